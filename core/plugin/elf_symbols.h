// SPDX-License-Identifier: Apache-2.0
// The dynamic symbols of a library file, read without opening it.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "core/base/status.h"

namespace mge {

// Calls take(name, exported) for each symbol of a 64-bit ELF file that is defined there and visible, or is to be found
// elsewhere. Nothing in the file is trusted; of a long name its beginning is told.
absl::Status ReadElfSymbols(const std::string& path, const std::function<void(std::string_view, bool)>& take);

// "" if a backend exports no symbol but its entry, else a sentence.
absl::StatusOr<std::string> MoreThanOneExport(const std::string& path);

}  // namespace mge
