// SPDX-License-Identifier: Apache-2.0
// Settings of this backend, and their values while it runs.
#pragma once

#include <cstdlib>
#include <string>

#include "mge/plugin.hpp"

namespace mge::null {

// The key begins with the backend's name; the user may set MGE_NULL_DEVICES, or `null.devices` in a
// file. The host checks type, range and choices, so that a value that arrives here is right. A
// backend never reads the environment itself.
inline constexpr mge_setting kDevicesSetting = {
    .struct_size = sizeof(mge_setting),
    .type = MGE_SETTING_INT,
    .key = Text("null.devices"),
    .fallback = Text("1"),
    .choices = {},
    .unit = Text("devices"),
    .doc = Text("Number of devices that the template backend pretends to have."),
    .min = 1,
    .max = 16,
    .lifecycle = MGE_LIFECYCLE_FIRST_SET,
    .reserved = 0,
};

inline constexpr const mge_setting* kSettings[] = {&kDevicesSetting};
enum SettingIndex : uint32_t { kDevices = 0 };  // places in kSettings

// The value as text; only between start() and stop().
inline std::string Setting(SettingIndex index) {
  mge_text text = {};
  if (Host()->setting(Host()->self, index, &text) != MGE_OK) return {};
  return std::string(View(text));
}

inline uint32_t DeviceCount() {
  return static_cast<uint32_t>(std::strtoul(Setting(kDevices).c_str(), nullptr, 10));
}

}  // namespace mge::null
