// SPDX-License-Identifier: Apache-2.0
// The quarantine: files whose start ended or hung a process once, and are not opened again until someone lets them go.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/status.h"

namespace mge {

// A folder with one small file per entry, so that an entry is complete or absent and processes need no lock. The key is
// BuildOf() the file: what is built anew has another one.
class Quarantine {
 public:
  struct Entry {
    std::string key;
    std::string name;    // of the backend
    std::string path;    // where the file was
    std::string reason;  // a sentence
  };

  Quarantine() = default;  // holds nothing, and takes nothing
  explicit Quarantine(std::string directory) : directory_(std::move(directory)) {}

  const std::string& directory() const { return directory_; }

  bool empty() const;
  std::optional<Entry> Find(const std::string& key) const;  // an entry that cannot be read still holds
  std::vector<Entry> All() const;                           // by key
  absl::Status Add(const Entry& entry) const;               // kFileWrite
  absl::Status Remove(const std::string& key) const;        // kFileWrite

 private:
  std::string directory_;
};

}  // namespace mge
