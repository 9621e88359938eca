// SPDX-License-Identifier: Apache-2.0
// Where the dynamic linker would look for the libraries of a backend: by the rules that hold for the backend itself.
#pragma once

#include <string>
#include <vector>

#include "core/plugin/verdict.h"

namespace mge {

// kOk, or why a library that somebody else has put somewhere could be loaded with the backend.
struct SearchJudgement {
  VerdictCode code = VerdictCode::kOk;
  std::string reason, fix;
};

// Judges the file's RUNPATH, RPATH and needed libraries, and those of the libraries that lie where these say. `file` is
// absolute and holds no link. What the system's own list of directories gives is not followed: it is root's.
SearchJudgement JudgeSearchPath(const std::string& file);

// The libraries that the file finds by $ORIGIN, and those that they find so in turn: what it brings along. Relative to its
// directory: "lib/libfoo.so.1".
std::vector<std::string> LibrariesBeside(const std::string& file);

}  // namespace mge
