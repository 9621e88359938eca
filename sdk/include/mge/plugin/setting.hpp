// SPDX-License-Identifier: Apache-2.0
// Settings of a backend: declared by the backend, set by the user, checked by the host, read between start and stop.
//
//   inline constexpr mge_setting kDevices = mge::IntSetting("demo.devices", "1", 1, 16, "devices", "Number of devices.");
//   static constexpr const mge_setting* kSettings[] = {&kDevices};   // in the backend's struct
//   int64_t n = mge::ToInt(mge::SettingOf(kDevices));                // MGE_DEMO_DEVICES, demo.devices in a file, or 1
#pragma once

#include <cstdint>
#include <cstdlib>
#include <span>
#include <string>
#include <string_view>

#include "mge/plugin/error.hpp"
#include "mge/plugin/visibility.hpp"

namespace mge MGE_HIDDEN {
namespace internal {

constexpr mge_setting SettingRow(int32_t type, std::string_view key, std::string_view default_value, std::string_view doc) {
  mge_setting s = {};
  s.struct_size = sizeof(s);
  s.type = type;
  s.key = Text(key);
  s.default_value = Text(default_value);
  s.doc = Text(doc);
  s.lifecycle = MGE_LIFECYCLE_FIRST_SET;
  return s;
}

constexpr mge_setting Ranged(mge_setting s, double min, double max, std::string_view unit) {
  s.min = min;
  s.max = max;
  s.unit = Text(unit);
  return s;
}

}  // namespace internal

// Each function declares a setting. The key begins with the backend's name. The default is written as a user would write it.
// `min` = `max` = 0 means no range.
constexpr mge_setting BoolSetting(std::string_view key, std::string_view default_value, std::string_view doc) {
  return internal::SettingRow(MGE_SETTING_BOOL, key, default_value, doc);
}
// An integer setting. Use the unit "devices" for a number of devices to create: tests of the backend set it if its default
// is 0.
constexpr mge_setting IntSetting(std::string_view key, std::string_view default_value, double min, double max,
                                 std::string_view unit, std::string_view doc) {
  return internal::Ranged(internal::SettingRow(MGE_SETTING_INT, key, default_value, doc), min, max, unit);
}
constexpr mge_setting DoubleSetting(std::string_view key, std::string_view default_value, double min, double max,
                                    std::string_view unit, std::string_view doc) {
  return internal::Ranged(internal::SettingRow(MGE_SETTING_DOUBLE, key, default_value, doc), min, max, unit);
}
constexpr mge_setting BytesSetting(std::string_view key, std::string_view default_value, double min, double max,
                                   std::string_view doc) {
  return internal::Ranged(internal::SettingRow(MGE_SETTING_BYTES, key, default_value, doc), min, max, "bytes");
}
constexpr mge_setting TextSetting(std::string_view key, std::string_view default_value, std::string_view doc) {
  return internal::SettingRow(MGE_SETTING_TEXT, key, default_value, doc);
}
// A setting with a list of allowed words in `choices`, separated by '|'.
constexpr mge_setting ChoiceSetting(std::string_view key, std::string_view default_value, std::string_view choices,
                                    std::string_view doc) {
  mge_setting s = internal::SettingRow(MGE_SETTING_CHOICE, key, default_value, doc);
  s.choices = Text(choices);
  return s;
}
// Makes a setting dynamic: SettingOf() may return another value in each call. Other settings are constant while the backend
// runs.
constexpr mge_setting Dynamic(mge_setting s) {
  s.lifecycle = MGE_LIFECYCLE_DYNAMIC;
  return s;
}

namespace internal {
// Returns the backend's declared settings in their order. Set by start().
inline std::span<const mge_setting* const>& DeclaredSettings() {
  static std::span<const mge_setting* const> settings;
  return settings;
}
}  // namespace internal

// Returns the value of this backend's setting as text that the host has checked: booleans as 1 or 0, sizes in bytes.
inline std::string_view SettingOf(const mge_setting& setting) {
  const mge_host* host = Host();
  if (!host) return View(setting.default_value);
  std::span<const mge_setting* const> declared = internal::DeclaredSettings();
  for (uint32_t i = 0; i < declared.size(); ++i) {
    mge_text text = {};
    if (declared[i] == &setting) return View(host->setting(host->self, i, &text) == MGE_OK ? text : setting.default_value);
  }
  [[maybe_unused]] static const bool said = [&] {
    Log(MGE_LOG_ERROR,
        "the setting '" + std::string(View(setting.key)) + "' cannot be set: add it to the backend's kSettings");
    return true;
  }();
  return View(setting.default_value);
}
inline int64_t ToInt(std::string_view value) { return std::strtoll(std::string(value).c_str(), nullptr, 10); }
inline uint64_t ToBytes(std::string_view value) { return std::strtoull(std::string(value).c_str(), nullptr, 10); }
inline double ToDouble(std::string_view value) { return std::strtod(std::string(value).c_str(), nullptr); }
inline bool ToBool(std::string_view value) { return value == "1"; }

}  // namespace MGE_HIDDEN
