// SPDX-License-Identifier: Apache-2.0
// Brings a value where a unit wants it: the reorders between layouts and the copies between memories of a plan.
#pragma once

#include "core/base/status.h"
#include "core/plan/draft.h"

namespace mge {

// What draft number `unit` makes of v (-1: an input of the graph).
int32_t NewItem(Planning& p, ValueId v, const mge_layout& layout, int32_t space, Device* device, int32_t unit);

// The item that holds v in that layout, in the memory in which `reader` works; units that make it are added to the drafts.
// -1 for a constant. Between two devices a copy goes directly where their link says so, else through the host.
absl::StatusOr<int32_t> Supply(Planning& p, ValueId v, const mge_layout& layout, Device& reader);

// The queue of that kind (MGE_QUEUE_...) on a device: an index into the plan's.
int32_t QueueOf(Planning& p, Device& device, int32_t kind);

}  // namespace mge
