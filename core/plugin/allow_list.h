// SPDX-License-Identifier: Apache-2.0
// An allow-list: the files that may be opened as backends, by what is in them.
#pragma once

#include <set>
#include <string>
#include <string_view>

#include "core/base/status.h"

namespace mge {

// Written by `sha256sum mge_cpu.so ... > list`: per line 64 hexadecimal digits, then anything; '#' begins a comment. The
// names of files do not matter: a hash stands for the content wherever that lies.
class AllowList {
 public:
  // kBadSetting with the line, if it is no such list; kFileAccess; also if others than root and the present user could
  // change it.
  static absl::StatusOr<AllowList> Read(const std::string& path);

  bool Holds(std::string_view sha256) const { return hashes_.find(sha256) != hashes_.end(); }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
  std::set<std::string, std::less<>> hashes_;
};

}  // namespace mge
