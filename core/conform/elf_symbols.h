// SPDX-License-Identifier: Apache-2.0
// The dynamic symbols of a library file, read without opening it.
#pragma once

#include <string>
#include <vector>

#include "core/base/status.h"

namespace mge::conform {

struct ElfSymbols {
  std::vector<std::string> exported;   // defined here and visible
  std::vector<std::string> undefined;  // to be found elsewhere
};

absl::StatusOr<ElfSymbols> ReadElfSymbols(const std::string& path);

}  // namespace mge::conform
