// SPDX-License-Identifier: Apache-2.0
// Adds the reorders and copies that bring a value to the layout and memory that a unit needs.
#pragma once

#include "core/base/status.h"
#include "core/plan/plan_builder.h"

namespace mge {

// Adds an item of v and returns its index. PlannedUnit number `unit` writes it; -1 is an input of the graph.
int32_t NewItem(PlanBuilder& p, ValueId v, const mge_layout& layout, int32_t space, Device* device, int32_t unit);

// Returns the item that holds v in that layout, in the memory in which `reader` works. If there is none, adds the units that
// create it to the planned units. Returns -1 for a constant. A copy between two devices is direct if their link allows it,
// else it goes through the host. Fails with kKernelFailed if a backend has no reorder or an invalid link.
absl::StatusOr<int32_t> TransferTo(PlanBuilder& p, ValueId v, const mge_layout& layout, Device& reader);

// Returns the index in Plan::queues of the device's queue of that kind (MGE_QUEUE_...). Adds the queue if it is new.
int32_t QueueOf(PlanBuilder& p, Device& device, int32_t kind);

}  // namespace mge
