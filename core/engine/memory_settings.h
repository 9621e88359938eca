// SPDX-License-Identifier: Apache-2.0
// The memory settings as options of the devices: limits, pools, reserves.
//
// Which setting applies, first match wins:
//   pool of a GPU         memory.gpu_pool, memory.pool, the backend's pool
//   pool of another       memory.pool, the backend's pool
//   pool of every device  growing, if memory.static_policy is dynamic or both; another pool beside it is an error
//   reserve               memory.reserve_cuda or memory.reserve_rocm for devices of that class, memory.reserve, the backend's
//   free share of a GPU   memory.gpu_reserve_percent, beside any reserve, if that setting or memory.gpu_pool is set
#pragma once

#include "core/base/status.h"
#include "core/env/snapshot.h"
#include "core/plugin/devices.h"

namespace mge {

// Fills the members of `out` that describe memory. Fails with kBadSetting for an unknown reserve policy, and for a reserve
// beside a pool that cannot cut blocks out of it.
absl::Status SetMemory(const Snapshot& settings, DevicesOptions& out);

}  // namespace mge
