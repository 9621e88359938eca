// SPDX-License-Identifier: Apache-2.0
// The links between the devices of a group, as classes that reduction trees compare.
#pragma once

#include <span>
#include <vector>

#include "core/kvstore/trees.h"
#include "core/plugin/device.h"

namespace mge {

struct DeviceLinks {
  // The class of each pair. If a pair has different links in both directions, the slower one counts.
  //   1  the way through the host, and a direct link over PCIe, which shares the way with the host
  //   2  the slowest other direct link, or one of unknown speed; 3: one about twice as fast, and so on
  LinkMatrix classes;
  std::vector<bool> direct;  // by the device that sends, then by the one that receives: copies are direct
};

// Returns the links between devices, which are open. `between_gpus` = false: there are no direct links between GPUs.
absl::StatusOr<DeviceLinks> LinksOf(std::span<Device* const> devices, bool between_gpus);

}  // namespace mge
