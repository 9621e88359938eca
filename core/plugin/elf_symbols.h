// SPDX-License-Identifier: Apache-2.0
// The dynamic symbols of a library file, read without opening it.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "core/base/status.h"
#include "mge/plugin.h"

namespace mge {

// Calls take(name, exported) for each dynamic symbol of a 64-bit ELF file that the file exports (`exported` true) or imports
// (`exported` false). Accepts any content: sizes and offsets are checked. Names are cut at 256 bytes. Fails with
// kPluginRefused if the file has no readable symbol table, with kFileAccess if it cannot be opened.
absl::Status ReadElfSymbols(const std::string& path, const std::function<void(std::string_view, bool)>& take);

// Returns "" if a plugin exports only its entry point, else a sentence that names the other symbols. Fails like
// ReadElfSymbols().
absl::StatusOr<std::string> MoreThanOneExport(const std::string& path, std::string_view entry = MGE_PLUGIN_QUERY_SYMBOL);

}  // namespace mge
