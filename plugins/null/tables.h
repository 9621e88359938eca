// SPDX-License-Identifier: Apache-2.0
// The tables of this backend, one per concern; plugin.cc joins them.
#pragma once

#include "mge/plugin.hpp"

// An open device. Opaque to the host: put contexts and handles of your driver here.
struct mge_device {
  uint32_t index = 0;
};

namespace mge::null {

extern const mge_device_api kDeviceTable;
extern const mge_memory_api kMemoryTable;
extern const mge_queue_api kQueueTable;
extern const mge_strategy_api kStrategyTable;

// The rows of kernels/.
const KernelRow* const* Kernels(uint64_t* count);

}  // namespace mge::null
