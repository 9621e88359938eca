// SPDX-License-Identifier: Apache-2.0
// What a shared object asks the dynamic linker for: the libraries that it needs, and where they are to be looked for.
#pragma once

#include <string>
#include <vector>

#include "core/base/status.h"

namespace mge {

// A list of directories in an ELF file, as it stands there: "$ORIGIN/../lib:/opt/lib".
struct ElfSearchPath {
  const char* kind;  // "RUNPATH" or "RPATH"
  std::string text;
};

struct ElfNeeds {
  std::vector<std::string> libraries;  // DT_NEEDED, and what DT_FILTER and DT_AUXILIARY load, in the file's order
  std::vector<ElfSearchPath> paths;
  std::string beyond = {};  // of what it has more than any honest file: the rest is left out here, and not by the linker
};

// Of a 64-bit ELF file; nothing in it is trusted. An object that is linked statically needs nothing.
absl::StatusOr<ElfNeeds> ReadElfNeeds(const std::string& path);

// Its libraries alone; none if the file cannot be read.
std::vector<std::string> NeededLibraries(const std::string& path);

// The parts of a list of directories, as the dynamic linker sees them: nothing in a list that is empty.
std::vector<std::string> ElementsOf(const ElfSearchPath& path);

}  // namespace mge
