// SPDX-License-Identifier: Apache-2.0
#include "core/plugin/tables.h"

#include "fmt/format.h"

namespace mge {
namespace {

constexpr uint64_t kMaxSettings = 1024;

// Copies a table, if there is one, and replaces the pointer by a pointer to the copy.
template <typename Table>
void Take(const Table*& table, Table& copy) {
  if (!table) return;
  copy = Widen(*table);
  table = &copy;
}

}  // namespace

std::string BackendTables::Read(const mge_plugin& given) {
  plugin_ = Widen(given);
  Take(plugin_.device, device_);
  Take(plugin_.memory, memory_);
  Take(memory_.own_pool, pool_);
  Take(memory_.own_reserve, reserve_);
  Take(plugin_.queue, queue_);
  Take(plugin_.kernel, kernel_);
  Take(plugin_.graph, graph_);
  Take(plugin_.strategy, strategy_);
  Take(plugin_.layout, layout_);
  Take(plugin_.profile, profile_);
  Take(plugin_.collective, collective_);
  if (plugin_.setting_count > kMaxSettings) {
    return fmt::format("it declares {} settings; the limit is {}", plugin_.setting_count, kMaxSettings);
  }
  if (plugin_.setting_count > 0 && !plugin_.settings) return "its list of settings is NULL";
  settings_.reserve(plugin_.setting_count);
  for (uint64_t i = 0; i < plugin_.setting_count; ++i) {
    const mge_setting* setting = plugin_.settings[i];
    if (setting) settings_.push_back(Widen(*setting));
    setting_list_.push_back(setting ? &settings_.back() : nullptr);
  }
  plugin_.settings = setting_list_.data();
  return WhyWidenedTableIsBad(plugin_);
}

}  // namespace mge
