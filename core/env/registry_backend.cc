// SPDX-License-Identifier: Apache-2.0
// Settings that a backend declares. They are checked like the core's rows, but at run time.
#include <cmath>
#include <cstdint>

#include "core/base/errors.h"
#include "core/env/registry_state.h"
#include "core/env/setting_table.h"
#include "core/env/setting_text.h"
#include "fmt/format.h"

namespace mge {
namespace {

constexpr size_t kLongestKey = 64;
constexpr size_t kMaxFlags = 31;

// Parses the default or a limit of the declaration, by the rules for a user's text. Returns the
// problem, or "".
std::string ReadLiteral(const SettingRow& row, const std::string& text, SettingLiteral& into) {
  auto parsed = ParseSetting(row, text);
  if (!parsed.ok()) return fmt::format("{} {}", Quoted(text), Std(parsed.status().message()));
  if (const auto* whole = std::get_if<int64_t>(&*parsed)) into.whole = *whole;
  if (const auto* real = std::get_if<double>(&*parsed)) into.real = *real;
  if (const auto* truth = std::get_if<bool>(&*parsed)) into.whole = *truth;
  into.text = text;
  return {};
}

// Creates the row of a declaration. The row refers to `text`. Returns the problem of the
// declaration, or "".
std::string MakeRow(std::string_view backend, BackendText& text, SettingRow& row) {
  const BackendSetting& setting = text.setting;
  const SettingType type = setting.type;
  if (!setting.key.starts_with(fmt::format("{}.", backend))) return "its key does not begin with the backend's name";
  if (setting.key.size() > kLongestKey) return fmt::format("its key is longer than {} characters", kLongestKey);
  for (size_t i = 0; i < setting.choices.size(); ++i) {
    bool flags = type == SettingType::kFlags;
    if (flags && i >= kMaxFlags) return fmt::format("it has more than {} flags", kMaxFlags);
    text.choices.emplace_back(flags ? int64_t{1} << i : static_cast<int64_t>(i), setting.choices[i]);
  }
  row = {.key = setting.key,
         .type = type,
         .choices = text.choices,
         .unit = setting.unit,
         .lifecycle = setting.lifecycle,
         .doc = setting.doc};

  std::string problem;
  if (!setting.min.empty() || !setting.max.empty()) {
    if (type != SettingType::kInt && type != SettingType::kBytes && type != SettingType::kDouble &&
        type != SettingType::kSeconds) {
      return "only numbers have limits";
    }
    SettingLiteral min = {.whole = type == SettingType::kBytes ? 0 : INT64_MIN, .real = -HUGE_VAL};
    SettingLiteral max = {.whole = INT64_MAX, .real = HUGE_VAL};
    if (!setting.min.empty()) problem = ReadLiteral(row, setting.min, min);
    if (problem.empty() && !setting.max.empty()) problem = ReadLiteral(row, setting.max, max);
    if (!problem.empty()) return "its limit " + problem;
    row.min = min;
    row.max = max;
    row.ranged = true;
  }
  if (!setting.default_value.empty()) {
    problem = ReadLiteral(row, setting.default_value, row.default_value);
    if (!problem.empty()) return "its default " + problem;
  }
  if (!ValidSetting(row)) {
    return "its key has characters other than small letters, digits, _ and dots, its doc is not a sentence, its "
           "default is missing or "
           "outside of its range, or its choices do not match its type";
  }
  return {};
}

// Returns the problem if a setting of the core sets this one and has another type, or "".
std::string TypeProblem(const std::deque<Entry>& entries, const SettingRow& row) {
  for (const Entry& e : entries) {
    if (e.row.sets == row.key && e.row.type != row.type) return fmt::format("{} sets it and has another type", e.row.key);
  }
  return {};
}

}  // namespace

void Registry::State::TakeFromCore(Entry& entry) {
  for (const Entry& from : entries) {
    if (from.row.sets != entry.row.key) continue;
    for (size_t source = 0; source < kSourceCount; ++source) {
      if (!entry.assigned[source]) entry.assigned[source] = from.assigned[source];
    }
  }
}

absl::StatusOr<std::vector<std::string>> Registry::RegisterBackend(std::string_view name, std::vector<BackendSetting> rows) {
  std::lock_guard lock(mutex_);
  State& state = *state_;
  if (name.empty() || name == kCoreOwner) {
    return Fail(errors::kPluginRefused, fmt::format("a backend named {} cannot declare settings", Quoted(name)),
                {.what = "the name is empty or reserved"});
  }
  if (std::find(state.backends.begin(), state.backends.end(), name) != state.backends.end()) state.Remove(name);

  std::vector<std::unique_ptr<BackendText>> texts;
  std::vector<Entry> entries;
  // Returns a text that names the setting with which the last of `entries` shares a name, or "".
  auto conflict = [&]() -> std::string {
    const Entry& last = entries.back();
    for (const Entry& other : state.entries) {
      if (other.HasName(last.row.key) || other.HasName(last.variable)) {
        return fmt::format("its name is already used by {} of {}", other.row.key, other.owner);
      }
    }
    for (size_t i = 0; i + 1 < entries.size(); ++i) {
      if (entries[i].variable == last.variable) return fmt::format("its name is also that of {}", entries[i].row.key);
    }
    return {};
  };
  for (BackendSetting& declared : rows) {
    BackendText& text = *texts.emplace_back(std::make_unique<BackendText>());
    text.setting = std::move(declared);
    SettingRow row;
    std::string problem = MakeRow(name, text, row);
    if (problem.empty()) problem = TypeProblem(state.entries, row);
    if (problem.empty()) {
      entries.push_back(MakeEntry(row, name));
      entries.back().read = state.marked_read && row.lifecycle == Lifecycle::kFirstSet;
      problem = conflict();
    }
    if (!problem.empty()) {
      return Fail(errors::kPluginRefused,
                  fmt::format("the backend {} declares an invalid setting {}", name, Quoted(text.setting.key)),
                  {.what = std::move(problem), .fix = "report this defect to the author of the backend"});
    }
  }
  for (Entry& entry : entries) {
    if (absl::Status taken = state.TakeAll(entry, logger_); !taken.ok()) {
      for (const Entry& e : entries) state.LetGo(e);
      return taken;
    }
    state.TakeFromCore(entry);
  }

  std::vector<std::string> values;
  for (const Entry& entry : entries) values.push_back(PlainText(entry.row, entry.Slot().value));
  for (auto& text : texts) state.backend_texts.push_back(std::move(text));
  for (Entry& entry : entries) state.Add(std::move(entry));
  state.backends.emplace_back(name);
  std::erase(state.waiting, name);
  state.Publish();
  return values;
}

}  // namespace mge
