// SPDX-License-Identifier: Apache-2.0
// A backend's tables as this host knows them: what an older backend's structs lack is zero, what a newer one's have more is
// left out. The rest of the host reads these copies and never asks for a struct_size.
#pragma once

#include <string>
#include <vector>

#include "mge/plugin.h"
#include "mge/plugin/structs.hpp"

namespace mge {

// A struct that begins with struct_size, as far as both sides know it. Keeps the struct_size that was given.
template <typename T>
T Widen(const T& given) {
  T out = Whole(given);
  out.struct_size = given.struct_size;
  return out;
}

// Not to be moved: the tables point at each other.
class BackendTables {
 public:
  BackendTables() = default;
  BackendTables(const BackendTables&) = delete;
  BackendTables& operator=(const BackendTables&) = delete;

  // Copies the tables and holds them against the contract: "" or a sentence that names the table and the slot.
  std::string Read(const mge_plugin& given);

  const mge_plugin& plugin() const { return plugin_; }

 private:
  mge_plugin plugin_ = {};
  mge_device_api device_ = {};
  mge_memory_api memory_ = {};
  mge_pool_api pool_ = {};
  mge_reserve_api reserve_ = {};
  mge_queue_api queue_ = {};
  mge_kernel_api kernel_ = {};
  mge_graph_api graph_ = {};
  mge_strategy_api strategy_ = {};
  mge_layout_api layout_ = {};
  mge_profile_api profile_ = {};
  std::vector<mge_setting> settings_;
  std::vector<const mge_setting*> setting_list_;
};

// "" or a sentence that names the table and the slot. Every struct is a copy made by Widen, the settings too.
std::string WhyWidenedTableIsBad(const mge_plugin& plugin);

// The same for the texts of a device, a copy made by Widen: a sentence that names the device and the text.
std::string WhyDeviceTextIsBad(const mge_device_info& device);

}  // namespace mge
