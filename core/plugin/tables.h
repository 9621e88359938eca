// SPDX-License-Identifier: Apache-2.0
// Copies of a backend's tables with the layout of this host. Members that an older backend does not have are zero. Members
// that only a newer backend has are dropped. The rest of the host uses these copies and need not check struct_size.
#pragma once

#include <string>
#include <vector>

#include "mge/plugin.h"
#include "mge/plugin/structs.hpp"

namespace mge {

// Returns a copy of a struct that begins with struct_size: the members that both sides know, the rest zero. The copy keeps
// the given struct_size.
template <typename T>
T Widen(const T& given) {
  T out = Whole(given);
  out.struct_size = given.struct_size;
  return out;
}

// The copied tables of one backend. Not movable, because the tables point to each other.
class BackendTables {
 public:
  BackendTables() = default;
  BackendTables(const BackendTables&) = delete;
  BackendTables& operator=(const BackendTables&) = delete;

  // Copies the tables and checks them against the contract. Returns "" or a sentence that names the table and the function.
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
  mge_collective_api collective_ = {};
  std::vector<mge_setting> settings_;
  std::vector<const mge_setting*> setting_list_;
};

// Checks copied tables against the contract. Returns "" or a sentence that names the table and the function. Every struct,
// settings included, must be a copy made by Widen().
std::string WhyWidenedTableIsBad(const mge_plugin& plugin);

// Checks the texts, numbers and properties of a device description. Returns "" or a sentence that names the device and the
// value. The struct must be a copy made by Widen().
std::string WhyDeviceInfoIsBad(const mge_device_info& device);

}  // namespace mge
