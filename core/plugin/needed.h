// SPDX-License-Identifier: Apache-2.0
// Which libraries a shared object asks for by name: says who needs what is missing.
#pragma once

#include <string>
#include <vector>

namespace mge {

// The DT_NEEDED names of a 64-bit ELF file, in its order; empty if the file cannot be read as one. Nothing in it is trusted.
std::vector<std::string> NeededLibraries(const std::string& path);

}  // namespace mge
