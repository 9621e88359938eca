// SPDX-License-Identifier: Apache-2.0
// An allow list: the files that may be opened as backends, identified by the SHA-256 of their content.
#pragma once

#include <set>
#include <string>
#include <string_view>

#include "core/base/status.h"

namespace mge {

// The hashes of a list file in the format of `sha256sum`. Each line has 64 hexadecimal digits, then any text. '#' begins a
// comment. File names in the list are ignored, so a file is allowed wherever it lies. Thread-safe after Read().
class AllowList {
 public:
  // Reads a list. Fails with kBadSetting if a line is malformed (the error names it), or if the file is larger than 1 MiB.
  // Also fails with kBadSetting if a user other than root and the current user could change the file. Fails with kFileAccess
  // if it cannot be read.
  static absl::StatusOr<AllowList> Read(const std::string& path);

  bool Holds(std::string_view sha256) const { return hashes_.find(sha256) != hashes_.end(); }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
  std::set<std::string, std::less<>> hashes_;
};

}  // namespace mge
