// SPDX-License-Identifier: Apache-2.0
// Chooses the compute queue of each kernel on devices with several of them, and the lane of each kernel without a queue.
//
// Kernels of one queue run one after the other, so parallel branches of a graph need several queues. A wait between two
// queues takes time, so short branches stay together. Algorithm: list scheduling (earliest start). Visits the units in order
// and estimates when each can start on each queue. A kernel stays on the queue of the producer that ends last, unless it can
// start earlier on another queue by more than the waits cost.
//
// If the user limits the number of workspaces (plan.workspaces), the queues are instead chosen by longest paths
// (color_paths.h), whatever the kernels cost. So are the lanes of kernels without queues, which run in parallel if each step
// is an operation of the engine.
#pragma once

#include <optional>

#include "core/plan/plan_context.h"
#include "core/plan/schedule.h"

namespace mge {

// The estimated time of a wait between two queues in microseconds.
inline constexpr double kQueueWaitUs = 5;

// Returns the user's limit of compute queues in use per device (plan.workspaces), or nullopt: as many as help.
std::optional<int32_t> QueueLimit(const PlanContext& context);

// Returns the user's limit of lanes per device without queues, or nullopt if its kernels run one after another, or each has a
// workspace of its own.
std::optional<int32_t> LaneLimit(const PlanContext& context);

// Moves kernels to further compute queues of their devices, and adds the queues that it uses. Kernels without an estimate take
// no time here. Sets the lanes of the kernels that run without queues, if there is a LaneLimit().
void SpreadKernels(Schedule& schedule, const PlanContext& context);

}  // namespace mge
