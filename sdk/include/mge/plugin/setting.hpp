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
                                    std::string_view doc, std::string_view unit = {}) {
  mge_setting s = internal::SettingRow(MGE_SETTING_CHOICE, key, default_value, doc);
  s.choices = Text(choices);
  s.unit = Text(unit);
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

// Reads the value of this backend's setting as text that the host has checked: booleans as 1 or 0, sizes in bytes. Without a
// host the value is the default. Fails if the host has no value, or if the backend's kSettings lacks the setting.
inline Result ReadSetting(const mge_setting& setting, std::string_view* value) {
  *value = View(setting.default_value);
  const mge_host* host = Host();
  if (!host) return {};
  const std::span<const mge_setting* const> declared = internal::DeclaredSettings();
  for (uint32_t i = 0; i < declared.size(); ++i) {
    if (declared[i] != &setting) continue;
    mge_text text = {};
    if (mge_code code = host->setting(host->self, i, &text); code != MGE_OK) {
      return {code, std::string(View(setting.key)) + " has no value from the host"};
    }
    *value = View(text);
    return {};
  }
  return {MGE_INTERNAL,
          "the setting '" + std::string(View(setting.key)) + "' cannot be set: add it to the backend's kSettings"};
}
// Returns the value that ReadSetting() reads, or the default if it fails.
inline std::string_view SettingOf(const mge_setting& setting) {
  std::string_view value;
  if (Result r = ReadSetting(setting, &value); r.code() == MGE_INTERNAL) {
    [[maybe_unused]] static const bool logged = (Log(MGE_LOG_ERROR, r.text()), true);
  }
  return value;
}

// Reads a setting of the host by key ("threads") as text in the same form. Valid until stop(). Fails with MGE_NOT_FOUND if
// the host has no such setting.
inline Result ReadCoreSetting(std::string_view key, std::string_view* value) {
  const mge_host* host = Host();
  mge_text text = {};
  mge_code code = MGE_NOT_FOUND;
  if (host && Covers(host, &mge_host::core_setting)) {
    const mge_text name = Text(key);
    code = host->core_setting(host->self, &name, &text);
  }
  if (code != MGE_OK) return {code, "the host has no setting '" + std::string(key) + "'"};
  *value = View(text);
  return {};
}

inline int64_t ToInt(std::string_view value) { return std::strtoll(std::string(value).c_str(), nullptr, 10); }
inline uint64_t ToBytes(std::string_view value) { return std::strtoull(std::string(value).c_str(), nullptr, 10); }
inline double ToDouble(std::string_view value) { return std::strtod(std::string(value).c_str(), nullptr); }
// The host writes 1 or 0. A default may also be written as true, on or yes.
inline bool ToBool(std::string_view value) { return value == "1" || value == "true" || value == "on" || value == "yes"; }

}  // namespace MGE_HIDDEN
