// SPDX-License-Identifier: Apache-2.0
// The settings of the backend under test: what the user gave, and the values that come of it, by the rules of the registry.
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

struct Given {
  SettingValues command_line = {};  // of --set; a name may be a key or a variable
  std::vector<std::string> config_files = {};
  Environment environment = {};

  bool empty() const { return command_line.empty() && config_files.empty() && environment.variables.empty(); }
};

struct ResolvedSettings {
  std::vector<std::string> values;  // in the order of the table, as the backend gets them
  std::string on_demand;            // "virtual.devices=2", which the kit chose so that there are devices; or empty
};

// `tried`: what a check sets, before all that was given. kPluginRefused if a declaration is wrong; other errors are the
// user's.
absl::StatusOr<ResolvedSettings> ResolveSettings(const mge_plugin& plugin, const Given& given, const SettingValues& tried);

// An error if the command line names a setting that the backend does not have, or a value of what was given is bad. A
// variable of the backend's that it does not know is warned of, or an error with MGE_STRICT_ENV.
absl::Status JudgeGiven(const mge_plugin& plugin, const Given& given, const std::function<void(const std::string&)>& warn);

// Whether it says how many devices there are, and says none by default: a whole number in "devices". The kit asks for two.
bool MakesDevices(const mge_setting& setting);

}  // namespace mge::conform
