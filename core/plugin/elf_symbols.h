// SPDX-License-Identifier: Apache-2.0
// The dynamic symbols of a library file, read without opening it.
#pragma once

#include <string>
#include <vector>

#include "core/base/status.h"

namespace mge {

struct ElfSymbols {
  std::vector<std::string> exported;   // defined here and visible
  std::vector<std::string> undefined;  // to be found elsewhere
};

// Of a 64-bit ELF file. Nothing in it is trusted.
absl::StatusOr<ElfSymbols> ReadElfSymbols(const std::string& path);

// "" if a backend exports no symbol but its entry, else a sentence.
std::string MoreThanOneExport(const ElfSymbols& symbols);

}  // namespace mge
