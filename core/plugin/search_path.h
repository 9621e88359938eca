// SPDX-License-Identifier: Apache-2.0
// Checks where the dynamic linker would look for the libraries of a backend.
//
// Why: a backend that passes every check can still load a library that another user has written, or one from the working
// directory. The check covers the file's own RUNPATH or RPATH, not those of its libraries. Rules: ld.so(8).
#pragma once

#include <string>
#include <vector>

#include "core/plugin/verdict.h"

namespace mge {

// The result of the check: kOk, or why another user could make the backend load a library of theirs.
struct SearchVerdict {
  VerdictCode code = VerdictCode::kOk;
  std::string reason, fix;
};

// Checks that each directory begins with '/' or $ORIGIN, and that only root and the current user may write it. If it does
// not exist, its closest existing parent is checked. `file` must be absolute and hold no symbolic link.
SearchVerdict CheckSearchPath(const std::string& file);

// Returns the libraries that the file itself finds by $ORIGIN, which must be copied with the file. Paths are relative to the
// file's directory: "lib/libfoo.so.1".
std::vector<std::string> LibrariesBeside(const std::string& file);

}  // namespace mge
