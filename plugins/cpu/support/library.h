// SPDX-License-Identifier: Apache-2.0
// Shared libraries that may be there: asked for by name before anything is loaded.
#pragma once

#include <string>

namespace mge::cpu {

// True if one of the loader's directories holds a file of that name ("libopenblas.so.0"). Opens nothing.
bool IsInstalled(const std::string& name);

// Opens one for ever; NULL with the reason if that fails. std::bad_alloc where there is no memory for it now.
void* OpenLibrary(const std::string& name, std::string* reason);

}  // namespace mge::cpu
