// SPDX-License-Identifier: Apache-2.0
// The settings of this backend and their values.
#pragma once

#include <string_view>

#include "mge/plugin.hpp"

namespace mge::cpu {

// Positions in kSettingRows.
enum SettingIndex : uint32_t {
  kSettingIsa,
  kSettingOnednn,
  kSettingOpenblas,
  kSettingHugePages,
  kSettingCount,
};

extern const mge_setting* const kSettingRows[kSettingCount];

// Returns the value as text, or the default if the host has none. [any]
std::string_view Setting(SettingIndex index);
bool SettingIsOn(SettingIndex index);

}  // namespace mge::cpu
