// SPDX-License-Identifier: Apache-2.0
#include "core/env/registry_state.h"

#include <map>

#include "core/base/errors.h"
#include "core/base/nearest.h"
#include "core/env/foreign_values.h"
#include "core/env/setting_text.h"
#include "fmt/format.h"

namespace mge {
namespace {

absl::Status BadSetting(const Entry& entry, std::string_view name, std::string_view text, const absl::Status& reason,
                        const Origin& origin) {
  std::string message(Std(reason.message()));
  const std::string ours = AllowedText(entry.row), allowed = AllowedTextFor(entry.row, name);
  std::string default_value = ValueTextFor(entry.row, DefaultOf(entry.row), name);
  if (const size_t at = message.find(ours); !ours.empty() && at != message.npos) message.replace(at, ours.size(), allowed);
  return Fail(reason.code() == absl::StatusCode::kFailedPrecondition ? errors::kConfigFile : errors::kBadSetting,
              fmt::format("{} = {} {}", name, text, message),
              {.what = allowed.empty() || message.find(allowed) != message.npos ? "" : fmt::format("allowed: {}", allowed),
               .where = origin.Describe(),
               .fix = fmt::format("use an allowed value, or remove the setting to use the default{}",
                                  default_value.empty() ? "" : fmt::format(", which is {}", default_value))});
}

}  // namespace

Entry MakeEntry(const SettingRow& row, std::string_view owner) {
  Entry entry = {.row = row, .owner = std::string(owner), .variable = VariableOf(row.key), .default_value = DefaultOf(row)};
  for (std::string_view alias : Words(row.aliases)) entry.aliases.emplace_back(alias);
  return entry;
}

Entry* Registry::State::Find(const std::string& name) const {
  auto it = by_name.find(name);
  return it == by_name.end() ? nullptr : it->second;
}

void Registry::State::Add(Entry entry) {
  Entry& added = entries.emplace_back(std::move(entry));
  added.default_value = DefaultOf(added.row, home);
  by_name[std::string(added.row.key)] = &added;
  by_name[added.variable] = &added;
  for (const std::string& alias : added.aliases) by_name[alias] = &added;
}

void Registry::State::LetGo(const Entry& entry) {
  auto each = [&](auto& statements, auto name_of) {
    for (auto& [what, taken] : statements) taken = taken && !entry.HasName(name_of(what));
  };
  each(call, [](const Assignment& a) { return a.name; });
  each(command_line, [](const Assignment& a) { return a.name; });
  each(environment, [](const auto& variable) { return variable.first; });
  each(config, [](const ConfigItem& item) { return item.key; });
}

void Registry::State::Remove(std::string_view owner) {
  std::deque<Entry> kept;
  for (Entry& entry : std::exchange(entries, {})) {
    if (entry.owner != owner) {
      kept.push_back(std::move(entry));
    } else {
      LetGo(entry);
    }
  }
  by_name.clear();
  for (Entry& entry : kept) Add(std::move(entry));
  std::erase(backends, owner);
}

absl::Status Registry::State::TakeAssignments(Entry& entry, std::vector<Statement<Assignment>>& statements, Source source) {
  for (auto& [assignment, taken] : statements) {
    if (taken || !entry.HasName(assignment.name)) continue;
    taken = true;
    if (assignment.text.empty()) continue;
    Origin origin = {source, source == Source::kCall      ? std::string()
                             : !assignment.option.empty() ? assignment.option
                                                          : fmt::format("--set {}={}", assignment.name, assignment.text)};
    auto value = ParseFor(entry.row, assignment.name, assignment.text, home);
    if (!value.ok()) return BadSetting(entry, assignment.name, Quoted(assignment.text), value.status(), origin);
    Assigned option = {*std::move(value), std::move(origin)};
    MGE_RETURN_IF_ERROR(CheckOneSource(entry, option, assignment.name, assignment.text));
    entry.assigned[static_cast<size_t>(source)] = std::move(option);
  }
  return absl::OkStatus();
}

// Uses the setting's own variable before its aliases, and an earlier alias before a later one. Checks the values of all of
// them.
absl::Status Registry::State::TakeEnvironment(Entry& entry, const Logger& logger) {
  std::optional<Assigned>& slot = entry.assigned[static_cast<size_t>(Source::kEnvironment)];
  std::vector<std::string> names = {entry.variable};
  names.insert(names.end(), entry.aliases.begin(), entry.aliases.end());
  for (const std::string& name : names) {
    for (auto& [variable, taken] : environment) {
      if (taken || variable.first != name) continue;
      taken = true;
      if (variable.second.empty()) continue;
      Origin origin = {Source::kEnvironment, name};
      auto value = ParseFor(entry.row, name, variable.second, home);
      if (!value.ok()) return BadSetting(entry, name, Quoted(variable.second), value.status(), origin);
      if (!slot) {
        slot = Assigned{*std::move(value), std::move(origin)};
      } else if (slot->value != *value) {
        logger.Warning("{} and {} set {} differently; {} wins", slot->origin.detail, name, entry.row.key,
                       slot->origin.detail);
      }
    }
  }
  return absl::OkStatus();
}

absl::Status Registry::State::TakeNewEnvironment(Environment now, const Logger& logger) {
  constexpr size_t kEnvironment = static_cast<size_t>(Source::kEnvironment);
  const auto before = std::exchange(environment, {});
  for (auto& variable : now.variables) {
    const Entry* entry = Find(variable.first);
    // A name that was reported as unknown is not reported again.
    const bool reported = !entry && std::ranges::any_of(before, [&](const auto& statement) {
      return statement.taken && statement.what.first == variable.first;
    });
    environment.push_back({std::move(variable), reported || (entry && entry->read)});
  }
  std::vector<std::pair<Entry*, std::optional<Assigned>>> values;
  absl::Status status;
  for (Entry& entry : entries) {
    if (entry.read) continue;
    values.emplace_back(&entry, std::exchange(entry.assigned[kEnvironment], std::nullopt));
    status = TakeEnvironment(entry, logger);
    const auto& option = entry.assigned[static_cast<size_t>(Source::kCall)];
    if (status.ok() && option)
      status = CheckOneSource(entry, *option, entry.row.key, FormatSetting(entry.row, option->value));
    if (!status.ok()) break;
  }
  if (status.ok()) return status;
  for (auto& [entry, value] : values) entry->assigned[kEnvironment] = std::move(value);
  environment = before;
  return status;
}

absl::Status Registry::State::TakeConfig(Entry& entry) {
  for (auto& [item, taken] : config) {
    if (taken || item.key != entry.row.key) continue;
    taken = true;
    if (IsEmpty(item.value)) continue;
    Origin origin = {Source::kConfigFile, item.place};
    auto value = ReadConfigValue(entry.row, item.value, home);
    if (!value.ok()) return BadSetting(entry, item.key, ConfigText(item.value), value.status(), origin);
    entry.assigned[static_cast<size_t>(Source::kConfigFile)] = Assigned{*std::move(value), std::move(origin)};
  }
  return absl::OkStatus();
}

absl::Status Registry::State::TakeAll(Entry& entry, const Logger& logger) {
  MGE_RETURN_IF_ERROR(TakeConfig(entry));
  MGE_RETURN_IF_ERROR(TakeEnvironment(entry, logger));
  MGE_RETURN_IF_ERROR(TakeAssignments(entry, command_line, Source::kCommandLine));
  return TakeAssignments(entry, call, Source::kCall);
}

absl::Status Registry::State::ReadConfigFiles(std::vector<std::string> files_of_command_line, const Logger& logger) {
  Entry& entry = Core(kConfigFiles.key);
  MGE_RETURN_IF_ERROR(TakeAll(entry, logger));
  if (!files_of_command_line.empty()) {
    auto& slot = entry.assigned[static_cast<size_t>(Source::kCommandLine)];
    Origin origin = {Source::kCommandLine, "--config"};
    auto value = ReadConfigValue(entry.row, files_of_command_line, home);
    if (!value.ok()) return BadSetting(entry, "--config", ConfigText(files_of_command_line), value.status(), origin);
    slot = Assigned{*std::move(value), std::move(origin)};
  }
  const SettingSlot files = entry.Slot();
  for (const std::string& path : std::get<std::vector<std::string>>(files.value)) {
    MGE_ASSIGN_OR_RETURN(std::vector<ConfigItem> items, ReadConfigFile(path));
    for (ConfigItem& item : items) {
      if (item.key == "include" || item.key == entry.row.key) {
        return Fail(errors::kConfigFile, fmt::format("the key \"{}\" is not allowed in a configuration file", item.key),
                    {.what = "a configuration file cannot include other files",
                     .where = item.place,
                     .fix = "name every file with --config, or in MGE_CONFIG separated by colons"});
      }
      config.push_back({std::move(item)});
    }
  }
  return absl::OkStatus();
}

absl::Status Registry::State::CheckOneSource(const Entry& entry, const Assigned& option, std::string_view name,
                                             std::string_view text) const {
  const std::optional<Assigned>& variable = entry.assigned[static_cast<size_t>(Source::kEnvironment)];
  if (!entry.row.one_source || !variable || variable->value == option.value) return absl::OkStatus();
  std::string_view given;  // the text of the variable
  for (const auto& [statement, taken] : environment) {
    if (statement.first == variable->origin.detail) given = statement.second;
  }
  return Fail(
      errors::kBadSetting,
      fmt::format("the variable {} and the option {} set {} differently", variable->origin.detail, name, entry.row.key),
      {.what =
           fmt::format("{} is {}, {} is {}; MGE does not choose between them", variable->origin.detail, given, name, text),
       .where = fmt::format("{}; {}", variable->origin.Describe(), option.origin.Describe()),
       .fix = "unset the variable, or give both the same value"});
}

void Registry::State::Publish() {
  auto next = std::make_shared<Snapshot>();
  std::vector<std::string> dynamic;
  std::map<std::string_view, size_t> backend_index;
  for (const std::string& name : backends) {
    backend_index[name] = next->backends_.size();
    next->backends_.push_back({name, {}});
  }
  for (size_t i = 0; i < entries.size(); ++i) {
    const Entry& entry = entries[i];
    SettingSlot slot = entry.Slot();
    const bool differs = slot.value != entry.default_value || (!entry.row.unset.empty() && entry.Highest());
    if (entry.row.lifecycle == Lifecycle::kDynamic && differs) {
      std::string text = FormatSetting(entry.row, slot.value);
      dynamic.push_back(fmt::format("{}={}:{};", entry.row.key, text.size(), text));
    }
    if (i < kSettings.size()) {
      next->core_[i] = std::move(slot);
    } else {
      next->backends_[backend_index[entry.owner]].slots.push_back(std::move(slot));
    }
  }
  std::sort(dynamic.begin(),
            dynamic.end());  // makes the key independent of the order in which backends are registered
  for (const std::string& part : dynamic) next->dynamic_key_ += part;
  current = std::move(next);
}

absl::Status Registry::State::SetByCall(Entry& entry, std::string_view name, std::string_view text,
                                        std::string_view function) {
  Origin origin = {Source::kCall, std::string(function)};
  auto& slot = entry.assigned[static_cast<size_t>(Source::kCall)];
  if (text.empty()) {
    slot.reset();
  } else {
    auto value = ParseFor(entry.row, name, text, home);
    if (!value.ok()) return BadSetting(entry, name, Quoted(text), value.status(), origin);
    Assigned option = {*std::move(value), std::move(origin)};
    MGE_RETURN_IF_ERROR(CheckOneSource(entry, option, name, text));
    slot = std::move(option);
  }
  Publish();
  return absl::OkStatus();
}

std::string_view Registry::State::NearestName(std::string_view wrong, Names among) const {
  std::vector<std::string_view> names;
  for (const Entry& entry : entries) {
    if (among != Names::kVariables) names.push_back(entry.row.key);
    if (among == Names::kKeys) continue;
    names.push_back(entry.variable);
    names.insert(names.end(), entry.aliases.begin(), entry.aliases.end());
  }
  return Nearest(wrong, names);
}

}  // namespace mge
