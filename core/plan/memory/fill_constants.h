// SPDX-License-Identifier: Apache-2.0
// Writes the constants that a plan adds to their places: packs them and uploads them.
//
// Algorithm: if the backend can pack on a queue of the device (prepack_on), uploads the constant to a scratch block there
// and packs from that block. Otherwise packs on the host, on the compute pool, and uploads the result. Packed host copies
// for devices are created in batches and freed after each batch, so they never hold a second copy of all weights. A source that
// is lazy is in memory only while it is packed.
#pragma once

#include <cstdint>
#include <span>

#include "core/plan/memory/device_constants.h"
#include "core/plan/plan_context.h"
#include "core/plan/schedule.h"

namespace mge {

// A constant that a plan adds: a form that a kernel packs, a copy in a device's memory, or a lazy constant in host memory.
struct NewConstant {
  const PlannedUnit* unit = nullptr;  // the unit whose kernel packs it; nullptr: it keeps its plain form
  mge_kernel* kernel = nullptr;       // the kernel of that unit
  uint32_t operand = 0;
  const Value* value = nullptr;  // the constant of the model
  ConstantKey key;
  bool shared = false;                // true: other plans may use it by its key
  DeviceConstants* target = nullptr;  // nullptr: host memory
  uint64_t offset = 0;                // in the target
  Tensor packed = {};                 // set by FillConstants() for host memory
};

// Packs and uploads the constants, and adds them to `table`. Returns when the uploads have ended. The targets must have been
// acquired. If a budget refuses memory for a packed form or for staging, calls `when_over`. Fails with its error or the
// backend's, or if `stop` (nullable) is set.
absl::Status FillConstants(const Graph& graph, const Schedule& schedule, std::span<NewConstant> all, SharedConstants& table,
                           const PlanContext& context, const StopControl* stop, const WhenOver& when_over);

}  // namespace mge
