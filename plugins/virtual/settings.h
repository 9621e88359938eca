// SPDX-License-Identifier: Apache-2.0
// The settings of this backend, and the devices that they ask for.
#pragma once

#include <string>

#include "mge/plugin.hpp"
#include "plugins/gpu/software/device.h"

namespace mge::virtual_gpu {

extern const mge_setting* const kSettingRows[];
inline constexpr uint64_t kSettingCount = 13;

struct Options {
  int devices = 0;
  bool gpu = false;           // devices answer to gpu0, gpu1...
  bool wrong_kernel = false;  // a candidate that is fast and wrong is offered
  uint64_t max_allocation = 0;  // bytes of one slab; 0: no limit
  software::DeviceOptions device;  // of each, but for number and name
  Result problem;             // what is wrong with a setting; the devices are then listed as unusable
};

// Reads them from the host; between start() and stop().
Options ReadOptions();

}  // namespace mge::virtual_gpu
