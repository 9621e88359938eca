// SPDX-License-Identifier: Apache-2.0
// The settings of this backend, and the devices that they describe.
#pragma once

#include <string>

#include "mge/plugin.hpp"
#include "plugins/gpu/software/device.h"

namespace mge::virtual_gpu {

extern const mge_setting* const kSettingRows[];
inline constexpr uint64_t kSettingCount = 13;

// The values of the settings.
struct Options {
  int devices = 0;
  bool gpu = false;                // devices are also available as gpu0, gpu1...
  bool wrong_kernel = false;       // offer a candidate with a low estimate that computes nothing
  uint64_t max_allocation = 0;     // bytes per slab; 0: no limit
  software::DeviceOptions device;  // for every device, except number and name
  Result problem;                  // the invalid setting, if any; the devices are then listed as unusable
};

// Reads the settings from the host. Call it between start() and stop().
Options ReadOptions();

}  // namespace mge::virtual_gpu
