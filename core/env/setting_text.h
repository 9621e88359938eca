// SPDX-License-Identifier: Apache-2.0
// Conversion of settings' values from text and to text. No other code knows the text form of a type.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "core/base/status.h"
#include "core/env/setting.h"

namespace mge {

// A value in a configuration file.
using ConfigValue = std::variant<bool, int64_t, double, std::string, std::vector<std::string>>;

std::string_view TypeName(SettingType type);          // "bool", "bytes", "choice", ...
std::string_view LifecycleName(Lifecycle lifecycle);  // "first-set", "dynamic"

// Parses a value from a variable, the command line or a call. White space around it is removed. It must
// not be empty: an empty text means that the setting is unset. The message of an error continues the
// text "NAME = TEXT", for example "is not a whole number". In a path, `~` and `~/...` mean `home`, the user's home
// folder (HomeDirectory in environment.h); another user's `~name` is an error.
absl::StatusOr<SettingValue> ParseSetting(const SettingRow& row, std::string_view text, std::string_view home = {});

// Converts a value of a configuration file. Fails with kFailedPrecondition for a wrong type and with
// kInvalidArgument for a bad value. Messages have the form described above.
absl::StatusOr<SettingValue> ReadConfigValue(const SettingRow& row, const ConfigValue& value, std::string_view home = {});
bool IsEmpty(const ConfigValue& value);            // "" or []: the key sets nothing
std::string ConfigText(const ConfigValue& value);  // for messages

// Formats a value. ParseSetting parses the result to the same value.
std::string FormatSetting(const SettingRow& row, const SettingValue& value);

// Formats a value for a backend, which has no parser for settings: booleans as 1 or 0, sizes in bytes,
// times in seconds, or the row's word.
std::string PlainText(const SettingRow& row, const SettingValue& value);

// Returns the default of a row as a value. Expands `~` in a path if `home` is given.
SettingValue DefaultOf(const SettingRow& row, std::string_view home = {});

// Describes the allowed values: "0..1024", "1..1024, unlimited", "naive, threaded, threaded_per_device", or the row's `allowed`. Returns ""
// if all values are allowed.
std::string AllowedText(const SettingRow& row);

// Returns a text in quotes for a message. Escapes control characters and cuts the text after 80 bytes.
std::string Quoted(std::string_view text);

// Splits a text at spaces. The result refers to `text`.
std::vector<std::string_view> Words(std::string_view text);

}  // namespace mge
