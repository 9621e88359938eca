// SPDX-License-Identifier: Apache-2.0
// The settings of the backend under test: the values that result from the user's input by the rules of the registry.
#pragma once

#include <string>
#include <vector>

#include "core/base/log.h"
#include "core/base/status.h"
#include "core/env/registry.h"
#include "mge/plugin.h"

namespace mge::conform {

struct ResolvedSettings {
  std::vector<std::string> values;  // in the order of the table, as the backend gets them
  std::string device_setting;       // the setting that is the number of devices, and 0 by default; empty: there is none
  std::string on_demand;            // "virtual.devices=2": the kit's value of it, unless the user gave one; else empty
};

// Resolves the values of all declared settings. Fails with kPluginRefused if a declaration is wrong, and with another error
// if the user's input is invalid. The command line must name only settings of the backend. An unknown variable with the
// backend's prefix is a warning to the logger, or an error if MGE_STRICT_ENV is set.
absl::StatusOr<ResolvedSettings> ResolveSettings(const mge_plugin& plugin, const Sources& given,
                                                 const Logger& logger = Logger(LogLevel::kSilent));

}  // namespace mge::conform
