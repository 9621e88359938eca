// SPDX-License-Identifier: Apache-2.0
#include "core/conform/settings.h"

#include <algorithm>
#include <memory>
#include <span>

#include "core/base/errors.h"
#include "core/base/nearest.h"
#include "core/env/backend_settings.h"
#include "core/plugin/abi_call.h"
#include "fmt/format.h"
#include "fmt/ranges.h"

namespace mge::conform {

absl::StatusOr<ResolvedSettings> ResolveSettings(const mge_plugin& plugin, const Sources& given, const Logger& logger) {
  MGE_ASSIGN_OR_RETURN(std::unique_ptr<Registry> registry, Registry::Create(given, logger));
  const std::string backend = CopyText(plugin.name);
  const std::span<const mge_setting* const> declared(plugin.settings, plugin.setting_count);
  ResolvedSettings out;
  MGE_ASSIGN_OR_RETURN(out.values, registry->RegisterBackend(backend, DeclaredSettings(declared)));
  std::vector<SettingInfo> rows = registry->List();
  std::erase_if(rows, [&](const SettingInfo& row) { return row.owner != backend; });
  std::vector<std::string> keys;
  for (const SettingInfo& row : rows) keys.push_back(row.key);
  const std::string list = keys.empty() ? "none" : fmt::format("{}", fmt::join(keys, ", "));
  for (const auto& [name, text, option] : given.command_line) {
    if (std::ranges::any_of(rows, [&](const SettingInfo& row) { return row.key == name || row.variable == name; })) continue;
    return Fail(errors::kUnknownSetting,
                fmt::format("the backend {} has no setting \"{}\".{}", EscapeControl(backend), EscapeControl(name),
                            DidYouMean(Nearest(name, keys))),
                {.where = "command line", .fix = EscapeControl(fmt::format("it declares {}", list))});
  }
  MGE_RETURN_IF_ERROR(registry->CheckNamesOf(backend));
  for (size_t i = 0; i < rows.size(); ++i) {
    if (declared[i]->type != MGE_SETTING_INT || rows[i].unit != "devices" || rows[i].default_value != "0") continue;
    out.device_setting = rows[i].key;
    if (rows[i].origin != "default") continue;
    out.values[i] = declared[i]->max == 1 ? "1" : "2";
    out.on_demand = fmt::format("{}={}", rows[i].key, out.values[i]);
  }
  return out;
}

}  // namespace mge::conform
