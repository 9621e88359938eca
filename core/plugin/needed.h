// SPDX-License-Identifier: Apache-2.0
// The dynamic section of a shared object: the libraries that it needs and the directories in which the dynamic linker looks
// for them. Format: System V gABI, "Dynamic Linking".
#pragma once

#include <string>
#include <vector>

#include "core/base/status.h"

namespace mge {

struct ElfNeeds {
  std::vector<std::string> libraries;    // DT_NEEDED, DT_FILTER and DT_AUXILIARY, in the file's order
  std::string kind;                      // "RUNPATH", or "RPATH" if the file has no RUNPATH, or ""
  std::vector<std::string> directories;  // the elements of that list: "$ORIGIN/../lib", "/opt/lib"; may be empty texts
  std::string Text() const;              // the list as in the file: "$ORIGIN/../lib:/opt/lib"
};

// Reads the needs of a 64-bit ELF file. Accepts any content: sizes and offsets are checked. A statically linked object needs
// nothing. Fails with kPluginRefused if the file is malformed, with kFileAccess if it cannot be read.
absl::StatusOr<ElfNeeds> ReadElfNeeds(const std::string& path);

}  // namespace mge
