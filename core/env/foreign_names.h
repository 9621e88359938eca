// SPDX-License-Identifier: Apache-2.0
// Names of settings that come from other systems: MXNet, MegEngine and Ascend GE.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/env/setting.h"

namespace mge {

// Returns the system whose documentation defines this name of a setting: "MXNet", "MegEngine" or "Ascend GE". Returns "" for
// names of our own.
std::string_view SystemOf(std::string_view name);

// A name of another system for one of our settings.
struct ForeignName {
  std::string name;
  std::string_view system;
};

// Returns the foreign names among the variable and the aliases of a setting.
std::vector<ForeignName> ForeignNamesOf(std::string_view variable, const std::vector<std::string>& aliases);

}  // namespace mge
