// SPDX-License-Identifier: Apache-2.0
// Reads a configuration file (TOML) into a flat list of keys with their values and lines. The one
// file that calls toml++.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/base/status.h"
#include "core/env/setting_text.h"

namespace mge {

inline constexpr int64_t kConfigFileLimit = 1 << 20;  // bytes of a file
inline constexpr int64_t kConfigLineLimit = 4096;     // bytes of a line

// One `key = value`, its tables joined by dots: [engine] type = "naive" is engine.type.
struct ConfigItem {
  std::string key;
  ConfigValue value;
  std::string place;  // "path:line"
};

// Fails with kConfigFile: not a regular file, too large, not TOML (a key that stands twice too), a
// value of a type that no setting has. In the order of lines.
absl::StatusOr<std::vector<ConfigItem>> ReadConfigFile(const std::string& path);

}  // namespace mge
