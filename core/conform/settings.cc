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

absl::StatusOr<Registered> Register(const mge_plugin& plugin, const Given& given) {
  Sources sources = {.config_files = given.config_files, .environment = given.environment};
  for (const auto& [name, text] : given.command_line) sources.command_line.push_back({name, text});
  Registered out;
  MGE_ASSIGN_OR_RETURN(out.registry, Registry::Create(std::move(sources), Logger(LogLevel::kSilent)));
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

absl::Status CheckGiven(const mge_plugin& plugin, const Given& given, const std::function<void(const std::string&)>& warn) {
  absl::StatusOr<Registered> registered = Register(plugin, given);
  if (!registered.ok())
    return ErrorId(registered.status()) == errors::kPluginRefused.id ? absl::OkStatus() : registered.status();
  std::vector<std::string> keys, variables;
  for (const SettingInfo& info : registered->rows) {
    keys.push_back(info.key);
    variables.push_back(info.variable);
  }
  auto has = [](const std::vector<std::string>& names, const std::string& name) {
    return std::find(names.begin(), names.end(), name) != names.end();
  };
  std::string backend = CopyText(plugin.name);
  std::string declared = keys.empty() ? "it declares none" : fmt::format("it declares {}", fmt::join(keys, ", "));
  for (const auto& [name, text] : given.command_line) {
    if (has(keys, name) || has(variables, name)) continue;
    return Fail(errors::kUnknownSetting,
                fmt::format("the backend {} has no setting \"{}\".{}", EscapeControl(backend), EscapeControl(name),
                            DidYouMean(Nearest(name, keys))),
                {.where = "command line", .fix = EscapeControl(declared)});
  }
  std::string prefix = "MGE_";
  for (char c : backend) prefix += c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c;
  prefix += '_';
  for (const auto& [name, text] : given.environment.variables) {
    if (!name.starts_with(prefix) || text.empty() || has(variables, name)) continue;
    std::string title = fmt::format("the backend {} has no variable {}.{}", EscapeControl(backend), EscapeControl(name),
                                    DidYouMean(Nearest(name, variables)));
    if (registered->registry->snapshot()->Get<kStrictEnv>())
      return Fail(errors::kUnknownSetting, title, {.where = "environment", .fix = "unset it; " + EscapeControl(declared)});
    warn(title);
  }
  return absl::OkStatus();
}

bool MakesDevices(const mge_setting& setting) {
  return setting.type == MGE_SETTING_INT && CopyText(setting.unit) == "devices" && CopyText(setting.default_value) == "0";
}

}  // namespace mge::conform
