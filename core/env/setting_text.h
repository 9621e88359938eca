// SPDX-License-Identifier: Apache-2.0
// A setting's value as text and back: the one place that knows how each type is written.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "core/base/status.h"
#include "core/env/setting.h"

namespace mge {

// A value as a configuration file holds it.
using ConfigValue = std::variant<bool, int64_t, double, std::string, std::vector<std::string>>;

std::string_view TypeName(SettingType type);          // "bool", "bytes", "choice", ...
std::string_view LifecycleName(Lifecycle lifecycle);  // "first-set", "dynamic"
std::string_view StatusName(SettingStatus status);    // "built", "later"

// Reads a value as it stands in a variable, on the command line or in a call. White space around it
// is dropped; it must not be empty, for empty means unset. The message of an error goes on where
// "NAME = TEXT" ends: "is not a whole number".
absl::StatusOr<SettingValue> ParseSetting(const SettingRow& row, std::string_view text);

// Reads a value of a configuration file. A wrong type is kFailedPrecondition, a bad value
// kInvalidArgument; messages as above.
absl::StatusOr<SettingValue> ReadConfigValue(const SettingRow& row, const ConfigValue& value);
bool IsEmpty(const ConfigValue& value);            // "" or []: the key sets nothing
std::string ConfigText(const ConfigValue& value);  // for messages

// Writes a value so that ParseSetting reads it again.
std::string FormatSetting(const SettingRow& row, const SettingValue& value);

// The same for a backend, which has no parser of ours: truth as 1 or 0, sizes and times as plain
// numbers.
std::string PlainText(const SettingRow& row, const SettingValue& value);

// The default as a value.
SettingValue FallbackOf(const SettingRow& row);

// What is allowed: "0..1024", "naive, threaded, threaded_per_device", or the row's own words. Empty
// if anything is.
std::string AllowedText(const SettingRow& row);

// A text in quotes for a message: control characters escaped, cut after 80.
std::string Quoted(std::string_view text);

// The words of a text that is separated by spaces.
std::vector<std::string_view> Words(std::string_view text);

}  // namespace mge
