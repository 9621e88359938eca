// SPDX-License-Identifier: Apache-2.0
// Facts about this build, which build_facts.cmake writes.
#pragma once

namespace mge::cli::build {

extern const char* const kCommit;    // "1f2e3d4c5b6a", with "+" if files were changed; "unknown" outside of a repository
extern const char* const kCompiler;  // "GNU 12.2.0"
extern const char* const kType;      // "Release"

}  // namespace mge::cli::build
