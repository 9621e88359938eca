// SPDX-License-Identifier: Apache-2.0
// Reads parts of tokenizer.json. Errors name the part's path in the file.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/errors.h"
#include "nlohmann/json.hpp"

namespace mge::text {

using Json = nlohmann::json;

// A value of the file and its path. A handle: it is valid as long as the file's value. The first error of all parts of a file is kept
// in `status`; functions then return defaults.
class Part {
 public:
  Part(const Json& json, std::string path, absl::Status& status) : json_(&json), path_(std::move(path)), status_(&status) {}

  const Json& json() const { return *json_; }
  const std::string& path() const { return path_; }
  const absl::Status& status() const { return *status_; }

  bool Has(const char* key) const { return json_->is_object() && json_->contains(key) && !json_->at(key).is_null(); }
  // Returns the member, or null if there is none.
  Part Member(const char* key) const;
  std::vector<Part> Elements() const;  // of this array
  // Returns a value of this object or list, under the path of the whole, which spares the time for a path of each value.
  Part Within(const Json& value) const { return Part(value, path_, *status_); }
  std::vector<Part> Elements(const char* key) const { return Member(key).Elements(); }

  // Reads a member. Without one, the result is the default.
  std::string Text(const char* key, std::string fallback = {}) const;
  bool Flag(const char* key, bool fallback) const;
  int64_t Count(const char* key, int64_t fallback) const;
  // Reads this value.
  std::string AsText() const;
  int64_t AsCount() const;
  double AsNumber() const;

  // Records that the file is wrong: "vocab is not an object".
  void Refuse(std::string_view what) const;
  // Records that the library does not know something: "a normalizer 'X'".
  void RefuseKind(std::string_view kind) const;

 private:
  const Json* json_;
  std::string path_;
  absl::Status* status_;
};

}  // namespace mge::text
