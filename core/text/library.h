// SPDX-License-Identifier: Apache-2.0
// The interface between the command and libmge_text.so, which it opens at run time. Both are of one build.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/status.h"

namespace mge::text {

// A failed call: the id of a row of core/base/errors.h, and the parts of the error. Id 0: no error.
struct Failure {
  int id = 0;
  std::string title = {};
  ErrorParts parts = {};
};

// A tokenizer that was read from tokenizer.json. Used by one thread at a time.
class Tokenizer {
 public:
  virtual ~Tokenizer() = default;
  // Appends the ids of a text in UTF-8. `special`: with the tokens that the post-processor adds, such as one for the beginning.
  virtual Failure Encode(std::string_view text, bool special, std::vector<int64_t>& ids) = 0;
  // Sets `text` to the text of the tokens. Ids that are not known, and special tokens, have none. An incomplete character becomes U+FFFD.
  virtual Failure Decode(const std::vector<int64_t>& ids, std::string& text) = 0;
};

struct Library {
  int32_t version;  // MGE_VERSION of the build
  // Parses the text of a tokenizer.json. Fails with kUnsupportedFeature if it has a part that the library does not know, which
  // the error names.
  Failure (*open)(std::string_view json, std::unique_ptr<Tokenizer>& out);
};

inline constexpr char kLibraryFile[] = "libmge_text.so";      // in the folder mge/ beside libmge
inline constexpr char kLibrarySymbol[] = "mge_text_library";  // of a function: const Library* ()

}  // namespace mge::text
