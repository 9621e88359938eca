// SPDX-License-Identifier: Apache-2.0
// The spellings of values by which the pages of other systems define our settings.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "core/base/status.h"
#include "core/env/setting.h"

namespace mge {

// The values of a foreign name as its page spells them.
struct ForeignValues {
  std::string_view name;          // "MXNET_ENGINE_TYPE"
  std::string_view allowed;       // separated by ", "; each is a spelling of the setting; empty: as ours
  std::string_view page_default;  // the default of the page if ours differs, else empty
  std::string_view word = {};     // the page's spelling of the row's word (SettingRow::word), such as "0"
};

// Returns the names whose page spells values, or has a default, other than our own.
std::span<const ForeignValues> AllForeignValues();

// Parses a value that a source gives for `name`. Accepts our spelling and, if it is a foreign name, that of its page. See
// ParseSetting.
absl::StatusOr<SettingValue> ParseFor(const SettingRow& row, std::string_view name, std::string_view text,
                                      std::string_view home);

// Returns the allowed values for an error about `name`: in the spelling of its page if it is a foreign name, else ours.
std::string AllowedTextFor(const SettingRow& row, std::string_view name);

// Returns what the values of the page of `name` are in our words: "0 = off, 1 = static, 2 = static". Returns "" if the page spells
// them like us, apart from case, or if they are no words.
std::string MeaningsFor(const SettingRow& row, std::string_view name);

// Returns a value in the spelling of the page of `name`, or in ours.
std::string ValueTextFor(const SettingRow& row, const SettingValue& value, std::string_view name);

// Returns the default in the spelling of the page of `name`, or in ours; or what holds where the setting is not set.
std::string DefaultTextFor(const SettingRow& row, const SettingValue& default_value, std::string_view name);

// Returns the default on the page of `name` if ours differs, else "".
std::string_view PageDefault(std::string_view name);

}  // namespace mge
