// SPDX-License-Identifier: Apache-2.0
// The libraries that a backend's file needs directly: whether the dynamic linker will find them, and who may write them. For
// reports: it reads the linker's cache, and opens no library.
#pragma once

#include <string>

namespace mge {

// Returns a sentence that names the first library that is not found, or that another user may write; "" if there is none.
// Searches the file's RUNPATH or RPATH, the cache of the dynamic linker and the system's directories, and not
// LD_LIBRARY_PATH. `file` must be absolute.
std::string WhyDependenciesFail(const std::string& file);

}  // namespace mge
