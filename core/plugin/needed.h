// SPDX-License-Identifier: Apache-2.0
// The dynamic section of a shared object: the libraries that it needs and the directories in which the dynamic linker looks
// for them. Format: System V gABI, "Dynamic Linking".
#pragma once

#include <string>
#include <vector>

#include "core/base/status.h"

namespace mge {

// A list of directories, unchanged from the ELF file: "$ORIGIN/../lib:/opt/lib".
struct ElfSearchPath {
  const char* kind;  // "RUNPATH" or "RPATH"
  std::string text;
};

struct ElfNeeds {
  std::vector<std::string> libraries;  // DT_NEEDED, DT_FILTER and DT_AUXILIARY, in the file's order
  std::vector<ElfSearchPath> paths;
  std::string beyond = {};  // the limit of this reader that the file exceeds, else ""; then both lists are incomplete
};

// Reads the needs of a 64-bit ELF file. Accepts any content: sizes and offsets are checked. A statically linked object needs
// nothing. Fails with kPluginRefused if the file is malformed, with kFileAccess if it cannot be read.
absl::StatusOr<ElfNeeds> ReadElfNeeds(const std::string& path);

// Returns only the libraries. Returns an empty list if the file cannot be read.
std::vector<std::string> NeededLibraries(const std::string& path);

// Splits a list of directories at each ':' as the dynamic linker does. An empty list has no elements; an element may be
// empty.
std::vector<std::string> ElementsOf(const ElfSearchPath& path);

}  // namespace mge
