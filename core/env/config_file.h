// SPDX-License-Identifier: Apache-2.0
// Reads a configuration file (TOML) into a flat list of keys with their values and lines. Only
// config_file.cc uses toml++.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/base/status.h"
#include "core/env/setting_text.h"

namespace mge {

inline constexpr int64_t kConfigFileLimit = 1 << 20;  // maximum bytes per file
inline constexpr int64_t kConfigLineLimit = 4096;     // maximum bytes per line

// One `key = value`. The names of its tables are joined by dots: [engine] type = "naive" has the key engine.type.
struct ConfigItem {
  std::string key;
  ConfigValue value;
  std::string place;  // "path:line"
};

// Returns the items in the order of their lines. Errors: kConfigFile for a file that is not regular, is too large or is not
// valid TOML; for a duplicate key; for a value of a type that no setting has.
absl::StatusOr<std::vector<ConfigItem>> ReadConfigFile(const std::string& path);

}  // namespace mge
