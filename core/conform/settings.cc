// SPDX-License-Identifier: Apache-2.0
#include "core/conform/settings.h"

#include <algorithm>
#include <memory>
#include <span>
#include <utility>

#include "core/base/errors.h"
#include "core/base/nearest.h"
#include "core/env/backend_settings.h"
#include "core/plugin/abi_call.h"
#include "fmt/format.h"
#include "fmt/ranges.h"

namespace mge::conform {
namespace {

struct Registered {
  std::unique_ptr<Registry> registry;
  std::vector<std::string> values;
  std::vector<SettingInfo> rows;  // the backend's, in the order of the table
};

absl::StatusOr<Registered> Register(const mge_plugin& plugin, const Given& given,
                                    const Logger& logger = Logger(LogLevel::kSilent)) {
  Sources sources = {.config_files = given.config_files, .environment = given.environment};
  for (const auto& [name, text] : given.command_line) sources.command_line.push_back({name, text});
  Registered out;
  MGE_ASSIGN_OR_RETURN(out.registry, Registry::Create(std::move(sources), logger));
  std::string name = CopyText(plugin.name);
  std::span<const mge_setting* const> rows(plugin.settings, plugin.setting_count);
  MGE_ASSIGN_OR_RETURN(out.values, out.registry->RegisterBackend(name, DeclaredSettings(rows)));
  for (SettingInfo& info : out.registry->List()) {
    if (info.owner == name) out.rows.push_back(std::move(info));
  }
  return out;
}

}  // namespace

absl::StatusOr<ResolvedSettings> ResolveSettings(const mge_plugin& plugin, const Given& given) {
  MGE_ASSIGN_OR_RETURN(Registered registered, Register(plugin, given));
  ResolvedSettings out = {std::move(registered.values), {}};
  for (uint64_t i = 0; i < plugin.setting_count; ++i) {
    if (registered.rows[i].origin != "default" || !MakesDevices(*plugin.settings[i])) continue;
    out.values[i].assign(1, plugin.settings[i]->max == 1 ? '1' : '2');
    out.on_demand = fmt::format("{}={}", registered.rows[i].key, out.values[i]);
  }
  return out;
}

absl::Status CheckGiven(const mge_plugin& plugin, const Given& given, std::function<void(const std::string&)> warn) {
  auto log = [](void* to, LogLevel, std::string_view text) { (*static_cast<decltype(warn)*>(to))(std::string(text)); };
  absl::StatusOr<Registered> registered = Register(plugin, given, Logger(LogLevel::kWarning, log, &warn));
  if (!registered.ok())
    return ErrorId(registered.status()) == errors::kPluginRefused.id ? absl::OkStatus() : registered.status();
  std::vector<std::string> keys;
  for (const SettingInfo& info : registered->rows) keys.push_back(info.key);
  const std::string backend = CopyText(plugin.name);
  for (const auto& [name, text] : given.command_line) {
    if (std::ranges::any_of(registered->rows, [&](auto& row) { return row.key == name || row.variable == name; })) continue;
    return Fail(errors::kUnknownSetting,
                fmt::format("the backend {} has no setting \"{}\".{}", EscapeControl(backend), EscapeControl(name),
                            DidYouMean(Nearest(name, keys))),
                {.where = "command line",
                 .fix = EscapeControl(
                     fmt::format("it declares {}", keys.empty() ? "none" : fmt::format("{}", fmt::join(keys, ", "))))});
  }
  return registered->registry->CheckNamesOf(backend);
}

bool MakesDevices(const mge_setting& setting) {
  return setting.type == MGE_SETTING_INT && CopyText(setting.unit) == "devices" && CopyText(setting.default_value) == "0";
}

}  // namespace mge::conform
