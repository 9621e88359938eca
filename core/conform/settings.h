// SPDX-License-Identifier: Apache-2.0
// The settings of the backend under test: the user's input, and the values that result by the rules of the settings
// registry.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "core/base/status.h"
#include "core/env/environment.h"
#include "mge/plugin.h"

namespace mge::conform {

using SettingValues = std::map<std::string, std::string>;  // key -> text

// The user's input.
struct Given {
  SettingValues command_line = {};  // values of --set; a name may be a key or a variable
  std::vector<std::string> config_files = {};
  Environment environment = {};

  bool empty() const { return command_line.empty() && config_files.empty() && environment.variables.empty(); }
};

// The resulting values.
struct ResolvedSettings {
  std::vector<std::string> values;  // in the order of the table, as the backend gets them
  std::string on_demand;            // "virtual.devices=2": a setting that the kit chose to get devices; else empty
};

// Resolves the values of all declared settings. Fails with kPluginRefused if a declaration is wrong, and with another error
// if the user's input is invalid.
absl::StatusOr<ResolvedSettings> ResolveSettings(const mge_plugin& plugin, const Given& given);

// Checks the user's input. Fails if the command line names a setting that the backend does not have, or if a value is
// invalid. For an unknown variable with the backend's prefix, calls `warn`, or fails if MGE_STRICT_ENV is set.
absl::Status CheckGiven(const mge_plugin& plugin, const Given& given, std::function<void(const std::string&)> warn);

// Returns whether a setting is the number of devices and is 0 by default: an integer with the unit "devices". The kit sets
// such a setting to 2.
bool MakesDevices(const mge_setting& setting);

}  // namespace mge::conform
