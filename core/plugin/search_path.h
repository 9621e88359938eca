// SPDX-License-Identifier: Apache-2.0
// Checks where the dynamic linker would look for the libraries of a backend.
//
// Why: a backend that passes every check can still load a library that another user has written, or one from the working
// directory. The checks of the backend's own file are therefore applied to its libraries.
//
// Algorithm: read RUNPATH, RPATH and the needed libraries (needed.h). Each directory must begin with '/' or $ORIGIN. Walk
// each path like the kernel does, link by link. Only root and the current user may write the directories on the way. If the
// end does not exist, this holds for the last existing directory. Repeat for each library found there. Rules: ld.so(8), "The
// dynamic linker".
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

// Checks the RUNPATH, RPATH and needed libraries of a file, and of the libraries that it finds through them. `file` must be
// absolute and hold no symbolic link. Libraries in the system's own directories are not checked, because root owns them.
SearchVerdict CheckSearchPath(const std::string& file);

// Returns the libraries that the file finds by $ORIGIN, and those that they find by $ORIGIN in turn. These libraries must be
// copied with the file. Paths are relative to the file's directory: "lib/libfoo.so.1".
std::vector<std::string> LibrariesBeside(const std::string& file);

}  // namespace mge
