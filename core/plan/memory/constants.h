// SPDX-License-Identifier: Apache-2.0
// The constants of a plan: their packed forms, their slots, and their upload.
//
// A kernel may want a constant in a form of its own. Packing it once, while planning, saves that work in each run. A device
// with its own memory needs a copy of each constant that its kernels read. Plans of one session share packed forms and
// uploaded constants (device_constants.h), except forms without a name on such devices.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "core/plan/kernels/prepare.h"
#include "core/plan/memory/buffers.h"
#include "core/plan/memory/device_constants.h"
#include "core/plan/plan.h"
#include "core/plan/schedule.h"

namespace mge {

// The constants that the steps of a plan read.
struct PlanConstants {
  std::vector<ConstantBase> host;
  std::vector<std::unique_ptr<DeviceConstants>> device;
  std::map<std::pair<ValueId, int32_t>, mge_slot> plain;  // slots of constants in their plain form, by value and space
  std::map<std::pair<size_t, size_t>, mge_slot> packed;   // slots of packed constants, by unit and operand
  uint32_t base_count = 0;                                // bases of the plan, those of its memory included
  int64_t plain_bytes = 0;                                // Plan::constant_bytes
  int64_t packed_bytes = 0;                               // Plan::packed_bytes
  int64_t uploaded_bytes = 0;                             // Plan::uploaded_bytes
  int64_t uploaded_packed_bytes = 0;                      // Plan::uploaded_packed_bytes
  int64_t measured_bytes = 0;                             // Plan::measured_constant_bytes
};

// Packs the constants for which a kernel asks for its own form, uploads the constants of devices that have memory of their
// own, and gives each constant that a step reads a slot. Uses the constants of other plans of the session where it can.
// Returns when the uploads have ended. If a budget refuses memory, calls `when_over`. Fails with its error or the
// backend's, or if `stop` (nullable) is set.
absl::StatusOr<PlanConstants> PlaceConstants(const Graph& graph, const Schedule& schedule, const PreparedKernels& kernels,
                                             const MemoryPlan& memory, const PlanContext& context, const StopControl* stop,
                                             const WhenOver& when_over);

// Returns the key of the packed form of operand k of a unit, which is a constant. If the kernel gives the form no name,
// ConstantKey::form is empty.
ConstantKey PackedKey(const Graph& graph, const PlannedUnit& unit, const mge_prepared& prepared, size_t k);

}  // namespace mge
