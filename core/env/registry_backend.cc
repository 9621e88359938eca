// SPDX-License-Identifier: Apache-2.0
// Settings that a backend declares: checked like a row of the core, though only at run time.
#include <cmath>
#include <cstdint>

#include "core/base/errors.h"
#include "core/env/registry_state.h"
#include "core/env/setting_table.h"
#include "core/env/setting_text.h"
#include "fmt/format.h"

namespace mge {

absl::Status Registry::RegisterBackend(std::string_view name, std::vector<BackendSetting> rows) {
  std::lock_guard lock(mutex_);
  State& state = *state_;
  auto refuse = [&](std::string_view key, std::string what) {
    return Fail(errors::kPluginRefused, fmt::format("the backend {} declares the setting {} wrongly", name, Quoted(key)),
                {.what = std::move(what), .fix = "this is the backend's mistake; tell its author"});
  };
  if (name.empty() || name == "core" ||
      std::find(state.backends.begin(), state.backends.end(), name) != state.backends.end()) {
    return Fail(errors::kPluginRefused, fmt::format("a backend named {} cannot declare settings", Quoted(name)),
                {.what = "the name is empty, reserved or registered already"});
  }

  std::vector<std::unique_ptr<BackendText>> texts;
  std::vector<Entry> entries;
  for (BackendSetting& declared : rows) {
    BackendText& text = *texts.emplace_back(std::make_unique<BackendText>());
    text.setting = std::move(declared);
    const BackendSetting& setting = text.setting;
    SettingRow row = {.key = setting.key, .type = setting.type, .unit = setting.unit, .lifecycle = setting.lifecycle,
                      .doc = setting.doc};
    if (!setting.key.starts_with(fmt::format("{}.", name))) {
      return refuse(setting.key, fmt::format("its key does not begin with \"{}.\"", name));
    }
    if (setting.key.size() > 64) return refuse(setting.key, "its key is longer than 64 characters");
    for (size_t i = 0; i < setting.choices.size(); ++i) {
      bool flags = setting.type == SettingType::kFlags;
      if (flags && i >= 31) return refuse(setting.key, "it has more than 31 flags");
      text.choices.emplace_back(flags ? int64_t{1} << i : static_cast<int64_t>(i), setting.choices[i]);
    }
    row.choices = text.choices;

    // The ends of the range and the default are read by the rules for a user's value, the ends without a range.
    bool whole = setting.type == SettingType::kInt || setting.type == SettingType::kBytes;
    bool real = setting.type == SettingType::kDouble || setting.type == SettingType::kSeconds;
    auto read = [&](const std::string& value, SettingLiteral& into) -> absl::Status {
      MGE_ASSIGN_OR_RETURN(SettingValue parsed, ParseSetting(row, value));
      if (const auto* number = std::get_if<int64_t>(&parsed)) into.whole = *number;
      if (const auto* number = std::get_if<double>(&parsed)) into.real = *number;
      if (const auto* flag = std::get_if<bool>(&parsed)) into.whole = *flag;
      into.text = value;
      return absl::OkStatus();
    };
    if (whole || real) {
      row.min = {.whole = setting.type == SettingType::kBytes ? 0 : INT64_MIN, .real = -HUGE_VAL};
      row.max = {.whole = INT64_MAX, .real = HUGE_VAL};
      for (auto [value, into] : {std::pair(&setting.min, &row.min), std::pair(&setting.max, &row.max)}) {
        if (value->empty()) continue;
        if (auto status = read(*value, *into); !status.ok()) {
          return refuse(setting.key, fmt::format("its limit {} {}", Quoted(*value), Std(status.message())));
        }
      }
      row.ranged = !setting.min.empty() || !setting.max.empty();
    } else if (!setting.min.empty() || !setting.max.empty()) {
      return refuse(setting.key, "only numbers have limits");
    }
    if (!setting.fallback.empty()) {
      if (auto status = read(setting.fallback, row.fallback); !status.ok()) {
        return refuse(setting.key, fmt::format("its default {} {}", Quoted(setting.fallback), Std(status.message())));
      }
    }
    if (!ValidSetting(row)) {
      return refuse(setting.key,
                    "its key is not of small letters, digits, _ and dots, its text is not a sentence, its default is "
                    "missing, or its choices do not fit its type");
    }
    Entry& entry = entries.emplace_back(MakeEntry(row, name));
    for (const Entry& other : state.entries) {
      if (other.HasName(entry.row.key) || other.HasName(entry.variable)) {
        return refuse(setting.key, fmt::format("the name belongs to {} ({})", other.row.key, other.owner));
      }
    }
    for (size_t i = 0; i + 1 < entries.size(); ++i) {
      if (entries[i].variable == entry.variable) return refuse(setting.key, "it is declared twice");
    }
    entry.read = state.marked_read && entry.row.lifecycle == Lifecycle::kFirstSet;
  }
  for (Entry& entry : entries) MGE_RETURN_IF_ERROR(state.TakeAll(entry, logger_));

  for (auto& text : texts) state.backend_texts.push_back(std::move(text));
  for (Entry& entry : entries) state.Add(std::move(entry));
  state.backends.emplace_back(name);
  state.Publish();
  return absl::OkStatus();
}

}  // namespace mge
