// SPDX-License-Identifier: Apache-2.0
// The explanation of one setting.
#pragma once

#include <string>

#include "core/cli/command.h"

namespace mge::cli {

// Prints what a setting does: its names, values, lifecycle, state, value and an example. `name` is a key, a variable or an
// alias, in any case. Returns the exit code; for an unknown name, reports an error with the nearest name.
int ExplainSetting(const Globals& globals, const std::string& name);

// Returns whether `text` looks like the name of a setting and not like a command: it holds a dot, an underscore or only
// capitals.
bool LooksLikeSetting(std::string_view text);

}  // namespace mge::cli
