// SPDX-License-Identifier: Apache-2.0
#include "core/env/registry.h"

#include <algorithm>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "core/base/errors.h"
#include "core/base/nearest.h"
#include "core/env/foreign_values.h"
#include "core/env/registry_state.h"
#include "core/env/removed_names.h"
#include "core/env/setting_text.h"
#include "fmt/format.h"

namespace mge {
namespace {

template <typename T>
std::vector<Statement<T>> Statements(std::vector<T> items) {
  std::vector<Statement<T>> out;
  for (T& item : items) out.push_back({std::move(item)});
  return out;
}

std::string Upper(std::string_view text) {
  std::string out(text);
  for (char& c : out) {
    if (c >= 'a' && c <= 'z') c = static_cast<char>(c - 'a' + 'A');
  }
  return out;
}

// Returns a sentence about an unknown name: its present name, else the nearest known name, else "".
std::string Hint(std::string_view name, std::string_view nearest) {
  const std::string successor = SuccessorOf(name);
  return successor.empty() ? DidYouMean(nearest) : fmt::format(" It is now named \"{}\".", successor);
}

absl::Status UnknownSetting(std::string_view nearest, std::string_view name, std::string_view where) {
  return Fail(errors::kUnknownSetting, fmt::format("no setting is named {}.{}", Quoted(name), Hint(name, nearest)),
              {.where = std::string(where), .fix = "`mge env` lists all settings"});
}

// Returns the backend whose name is the prefix of a key or variable: `virtual` for virtual.devices and
// MGE_VIRTUAL_DEVICES. Returns "" if there is none.
std::string_view OwnerAmong(std::span<const std::string> backends, std::string_view name) {
  for (const std::string& backend : backends) {
    if (name.starts_with(backend + ".") || name.starts_with("MGE_" + Upper(backend) + "_")) return backend;
  }
  return {};
}

bool HasOurPrefix(std::string_view name) {
  return std::any_of(std::begin(kVariablePrefixes), std::end(kVariablePrefixes),
                     [&](std::string_view prefix) { return name.starts_with(prefix); });
}

bool IsIgnored(std::string_view name) {
  return std::any_of(std::begin(kIgnoredVariables), std::end(kIgnoredVariables),
                     [&](const IgnoredVariable& row) { return row.name == name; });
}

}  // namespace

Registry::Registry(Logger logger) : state_(std::make_unique<State>()), logger_(logger) {}
Registry::~Registry() = default;

absl::StatusOr<std::unique_ptr<Registry>> Registry::Create(Sources sources, Logger logger) {
  std::unique_ptr<Registry> registry(new Registry(logger));
  State& state = *registry->state_;
  state.home = HomeDirectory(sources.environment);
  for (const SettingRow& row : kSettings) state.Add(MakeEntry(row, kCoreOwner));
  state.call = Statements(std::move(sources.call));
  state.command_line = Statements(std::move(sources.command_line));
  state.environment = Statements(std::move(sources.environment.variables));
  if (sources.follows_environment) {
    state.watch.emplace();
    state.watch->Changed();
  }

  // Read the log level and the strict mode first: they apply while the other settings are read.
  MGE_RETURN_IF_ERROR(state.ReadConfigFiles(std::move(sources.config_files), logger));
  for (std::string_view key : {kLogLevel.key, kLogOverride.key, kStrictEnv.key}) {
    MGE_RETURN_IF_ERROR(state.TakeAll(state.Core(key), logger));
  }
  state.strict = std::get<bool>(state.Core(kStrictEnv.key).Slot().value);
  state.Publish();
  if (state.current->IsSet<kLogLevel>() || state.current->IsSet<kLogOverride>()) {
    registry->logger_.set_level(state.current->LogThreshold());
  }

  for (Entry& entry : state.entries) {
    MGE_RETURN_IF_ERROR(state.TakeAll(entry, registry->logger_));
  }
  // These settings have taken effect above, so they are fixed.
  for (std::string_view key : {kConfigFiles.key, kStrictEnv.key, kLogLevel.key, kLogOverride.key}) {
    state.Core(key).read = true;
  }
  state.Publish();
  return registry;
}

absl::Status Registry::CheckUnknown(std::span<const std::string> absent, std::span<const std::string> waiting) {
  std::lock_guard lock(mutex_);
  state_->waiting.assign(waiting.begin(), waiting.end());
  return CheckNames(absent, "");
}

absl::Status Registry::CheckNamesOf(std::string_view backend) {
  std::lock_guard lock(mutex_);
  return CheckNames({}, backend);
}

// Checks the names that no setting has used: those of the backend `only`, or all if it is empty. The caller holds the mutex.
absl::Status Registry::CheckNames(std::span<const std::string> absent, std::string_view only) {
  State& state = *state_;
  const auto& left_out = state.current->Get<kPluginSkip>();
  const std::vector<std::string> own = {std::string(only)};
  // Returns whether the name is not checked now. Warns if it belongs to a backend in `absent`.
  auto passes = [&](std::string_view name, std::string_view origin) {
    if (!only.empty()) return OwnerAmong(own, name).empty();
    if (!OwnerAmong(left_out, name).empty() || !OwnerAmong(state.waiting, name).empty()) return true;
    std::string_view backend = OwnerAmong(absent, name);
    if (backend.empty()) return false;
    logger_.Warning("{} has no effect: the backend {} is not loaded ({})", name, backend, origin);
    return true;
  };

  for (auto& [variable, taken] : state.environment) {
    const std::string& name = variable.first;
    if (taken || !HasOurPrefix(name)) continue;
    if (variable.second.empty() || IsIgnored(name) || passes(name, "environment")) continue;
    std::string hint = Hint(name, state.NearestName(name, State::Names::kVariables));
    if (state.strict) {
      return Fail(errors::kUnknownSetting, fmt::format("the variable {} is unknown.{}", Quoted(name), hint),
                  {.what = "MGE_ENV_STRICT makes unknown variables with a prefix of MGE an error",
                   .where = fmt::format("environment {}", name),
                   .fix = "unset it; `mge env` lists all settings"});
    }
    taken = true;  // one warning is enough
    logger_.Warning("the variable {} is unknown and has no effect.{}", Quoted(name), hint);
  }
  for (auto& [item, taken] : state.config) {
    if (taken || passes(item.key, item.place)) continue;
    const Entry* meant = state.Find(item.key);  // the file may name a variable or an alias
    std::string hint = meant ? fmt::format(" Its key is \"{}\".", meant->row.key)
                             : Hint(item.key, state.NearestName(item.key, State::Names::kKeys));
    return Fail(errors::kConfigFile, fmt::format("no setting has the key {}.{}", Quoted(item.key), hint),
                {.where = item.place, .fix = "`mge env` lists all settings"});
  }
  for (auto [statements, source] : {std::pair(&state.command_line, "command line"), std::pair(&state.call, "call")}) {
    for (auto& [assignment, taken] : *statements) {
      if (taken || passes(assignment.name, source)) continue;
      return UnknownSetting(state.NearestName(assignment.name, State::Names::kAll), assignment.name, source);
    }
  }
  return absl::OkStatus();
}

void Registry::MarkRead() {
  std::lock_guard lock(mutex_);
  state_->marked_read = true;
  for (Entry& entry : state_->entries) entry.read |= entry.row.lifecycle == Lifecycle::kFirstSet;
}

absl::Status Registry::Set(std::string_view name, std::string_view text) {
  std::lock_guard lock(mutex_);
  Entry* entry = state_->Find(std::string(name));
  if (!entry && !OwnerAmong(state_->waiting, name).empty()) {
    std::erase_if(state_->call, [&](const auto& statement) { return statement.what.name == name; });
    state_->call.push_back({{std::string(name), std::string(text)}});
    return absl::OkStatus();
  }
  if (!entry) return UnknownSetting(state_->NearestName(name, State::Names::kAll), name, "call");
  if (entry->read) {
    return Fail(errors::kSettingTooLate, fmt::format("{} can no longer be set", entry->row.key),
                {.what = "it is read once per runtime, and this runtime has read it",
                 .where = "call",
                 .fix = entry->row.instead.empty() ? "set it before the runtime is created"
                                                   : fmt::format("call {}", entry->row.instead)});
  }
  MGE_RETURN_IF_ERROR(state_->SetByCall(*entry, name, text, ""));
  if (entry->owner != kCoreOwner && tell_backend_) {
    tell_backend_(entry->owner, entry->row.key, PlainText(entry->row, entry->Slot().value));
  }
  return absl::OkStatus();
}

absl::Status Registry::FollowEnvironment() {
  std::lock_guard lock(mutex_);
  State& state = *state_;
  if (!state.watch || !state.watch->Changed()) return absl::OkStatus();
  std::vector<SettingValue> before;
  for (const Entry& entry : state.entries) before.push_back(entry.Slot().value);
  absl::Status status = state.TakeNewEnvironment(CaptureEnvironment(), logger_);
  if (status.ok()) status = CheckNames({}, "");
  if (!status.ok()) {
    state.watch->Forget();
    return status;
  }
  state.Publish();
  for (size_t i = 0; i < before.size(); ++i) {
    const Entry& entry = state.entries[i];
    SettingValue value = entry.Slot().value;
    if (entry.owner == kCoreOwner || !tell_backend_ || value == before[i]) continue;
    tell_backend_(entry.owner, entry.row.key, PlainText(entry.row, value));
  }
  return absl::OkStatus();
}

void Registry::set_tell_backend(NotifyBackend tell) {
  std::lock_guard lock(mutex_);
  tell_backend_ = std::move(tell);
}

absl::Status Registry::SetThrough(std::string_view function, std::string_view name, std::string_view text) {
  std::lock_guard lock(mutex_);
  Entry* entry = state_->Find(std::string(name));
  MGE_CHECK(entry != nullptr && entry->row.instead == function);
  return state_->SetByCall(*entry, name, text, function);
}

std::shared_ptr<const Snapshot> Registry::snapshot() const {
  std::lock_guard lock(mutex_);
  return state_->current;
}

absl::StatusOr<std::shared_ptr<const Snapshot>> Registry::SnapshotWith(std::span<const Assignment> assignments) {
  std::lock_guard lock(mutex_);
  constexpr size_t kCall = static_cast<size_t>(Source::kCall);
  std::vector<std::pair<Entry*, std::optional<Assigned>>> before;
  std::shared_ptr<const Snapshot> present = state_->current;
  absl::Cleanup restore = [&] {
    for (auto it = before.rbegin(); it != before.rend(); ++it) it->first->assigned[kCall] = std::move(it->second);
    state_->current = std::move(present);
  };
  for (const Assignment& a : assignments) {
    Entry* entry = state_->Find(a.name);
    std::string_view owner = entry ? std::string_view(entry->owner) : OwnerAmong(state_->waiting, a.name);
    if (!entry && owner.empty())
      return UnknownSetting(state_->NearestName(a.name, State::Names::kAll), a.name, "session options");
    const bool read_once = entry && entry->row.lifecycle == Lifecycle::kFirstSet && entry->row.instead.empty();
    if (read_once || owner != kCoreOwner) {
      return Fail(
          errors::kSettingTooLate,
          fmt::format("{} cannot be set for one session", entry ? entry->row.key : std::string_view(a.name)),
          {.what = owner == kCoreOwner ? "it is read once per runtime"
                                       : fmt::format("it belongs to the backend {}, which all sessions share", owner),
           .where = "session options",
           .fix = "set it for the runtime"});
    }
    before.emplace_back(entry, entry->assigned[kCall]);
    MGE_RETURN_IF_ERROR(state_->SetByCall(*entry, a.name, a.text, "session options"));
  }
  return state_->current;
}

std::optional<std::string> Registry::CoreText(std::string_view key) const {
  std::lock_guard lock(mutex_);
  const Entry* entry = state_->Find(std::string(key));
  if (!entry || entry->owner != kCoreOwner || entry->row.key != key) return std::nullopt;
  return PlainText(entry->row, entry->Slot().value);
}

absl::StatusOr<std::string> Registry::TextOf(std::string_view name) const {
  std::lock_guard lock(mutex_);
  const Entry* entry = state_->Find(std::string(name));
  if (!entry) return UnknownSetting(state_->NearestName(name, State::Names::kAll), name, "call");
  return PlainText(entry->row, entry->Slot().value);
}

std::vector<SettingInfo> Registry::List() const {
  std::lock_guard lock(mutex_);
  std::vector<SettingInfo> list;
  for (const Entry& entry : state_->entries) {
    SettingSlot slot = entry.Slot();
    const std::string usual = DefaultTextFor(entry.row, entry.default_value, entry.row.key);
    std::vector<ForeignUse> foreign;
    for (ForeignName& f : ForeignNamesOf(entry.variable, entry.aliases)) {
      const std::string name = f.name;
      foreign.push_back({std::move(f), AllowedTextFor(entry.row, name), DefaultTextFor(entry.row, entry.default_value, name),
                         std::string(PageDefault(name)), MeaningsFor(entry.row, name)});
    }
    list.push_back({.key = std::string(entry.row.key),
                    .variable = entry.variable,
                    .aliases = entry.aliases,
                    .foreign = std::move(foreign),
                    .type = std::string(TypeName(entry.row.type)),
                    .default_value = usual,
                    .value = entry.Highest() ? FormatSetting(entry.row, slot.value) : usual,
                    .origin = slot.origin.Describe(),
                    .allowed = AllowedTextFor(entry.row, slot.origin.detail),
                    .unit = std::string(entry.row.unit),
                    .lifecycle = std::string(LifecycleName(entry.row.lifecycle)),
                    .unstable = entry.row.unstable,
                    .doc = std::string(entry.row.doc),
                    .owner = entry.owner});
  }
  // Backends may start in any order, but a list must not depend on it.
  std::stable_sort(list.begin(), list.end(), [](const SettingInfo& a, const SettingInfo& b) {
    return b.owner != kCoreOwner && (a.owner == kCoreOwner || a.owner < b.owner);
  });
  return list;
}

}  // namespace mge
