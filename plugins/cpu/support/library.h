// SPDX-License-Identifier: Apache-2.0
// Optional shared libraries: checks whether a library is installed, and opens it.
#pragma once

#include <string>

namespace mge::cpu {

// Returns whether one of the loader's directories contains a file with that name ("libopenblas.so.0"). Opens nothing.
bool IsInstalled(const std::string& name);

// Opens a library that is never closed. Returns NULL and sets *reason if that fails. Throws std::bad_alloc if memory ran
// out.
void* OpenLibrary(const std::string& name, std::string* reason);

}  // namespace mge::cpu
