// SPDX-License-Identifier: Apache-2.0
#include "core/env/backend_settings.h"

#include <algorithm>
#include <string>

#include "fmt/format.h"

namespace mge {
namespace {

std::string TextOf(const mge_text& t) { return t.data ? std::string(t.data, t.size) : std::string(); }

// Converts the type. An unknown type cannot occur: the check of the backend's table rejects it.
SettingType TypeOf(int32_t type) {
  switch (type) {
    case MGE_SETTING_BOOL: return SettingType::kBool;
    case MGE_SETTING_INT: return SettingType::kInt;
    case MGE_SETTING_DOUBLE: return SettingType::kDouble;
    case MGE_SETTING_BYTES: return SettingType::kBytes;
    case MGE_SETTING_CHOICE: return SettingType::kChoice;
    default: return SettingType::kText;
  }
}

BackendSetting ToBackendSetting(const mge_setting& row) {
  BackendSetting out;
  out.key = TextOf(row.key);
  out.type = TypeOf(row.type);
  out.default_value = TextOf(row.default_value);
  if (row.min != 0 || row.max != 0) {
    bool whole = out.type == SettingType::kInt || out.type == SettingType::kBytes;
    auto number = [whole](double v) { return whole ? fmt::format("{:.0f}", v) : fmt::format("{}", v); };
    out.min = number(row.min);
    out.max = number(row.max);
  }
  std::string choices = TextOf(row.choices);
  for (size_t at = 0; !choices.empty() && at <= choices.size();) {
    size_t end = std::min(choices.find('|', at), choices.size());
    out.choices.push_back(choices.substr(at, end - at));
    at = end + 1;
  }
  out.unit = TextOf(row.unit);
  out.lifecycle = row.lifecycle == MGE_LIFECYCLE_DYNAMIC ? Lifecycle::kDynamic : Lifecycle::kFirstSet;
  out.doc = TextOf(row.doc);
  return out;
}

}  // namespace

std::vector<BackendSetting> DeclaredSettings(std::span<const mge_setting* const> rows) {
  std::vector<BackendSetting> out;
  for (const mge_setting* row : rows) out.push_back(ToBackendSetting(*row));
  return out;
}

}  // namespace mge
