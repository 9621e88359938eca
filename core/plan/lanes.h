// SPDX-License-Identifier: Apache-2.0
// Chooses the compute queue of each kernel on devices with several of them, and the lane of each kernel without a queue.
//
// Kernels of one queue run one after the other, so parallel branches of a graph need several queues. A wait between two
// queues takes time, so short branches stay together. Algorithm: list scheduling (earliest start). Visits the units in order
// and estimates when each can start on each queue. A kernel stays on the queue of the producer that ends last, unless it can
// start earlier on another queue by more than the waits cost.
//
// If the user limits the number of workspaces (plan.num_temp), the queues are instead chosen by longest paths
// (color_paths.h), whatever the kernels cost. So are the lanes of kernels without queues, which run in parallel if each step
// is an operation of the engine.
#pragma once

#include <optional>

#include "core/plan/schedule.h"

namespace mge {

// The estimated time of a wait between two queues in microseconds.
inline constexpr double kQueueWaitUs = 5;

// Moves kernels to further compute queues of their devices. Adds the queues that it uses. Kernels without an estimate take
// no time here. `lanes` is the number of queues set by the user; nullopt: as many as help.
void SpreadOverQueues(Schedule& schedule, std::optional<int32_t> lanes);

// Sets the lanes of the kernels that run without queues: at most `lanes` for each device.
void SpreadOverLanes(Schedule& schedule, int32_t lanes);

}  // namespace mge
