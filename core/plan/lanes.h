// SPDX-License-Identifier: Apache-2.0
// Chooses the compute queue of each kernel on devices with several of them.
//
// Kernels of one queue run one after the other, so parallel branches of a graph need several queues. A wait between two
// queues takes time, so short branches stay together. Algorithm: list scheduling (earliest start). Visits the units in order
// and estimates when each can start on each queue. A kernel stays on the queue of the producer that ends last, unless it can
// start earlier on another queue by more than the waits cost.
#pragma once

#include "core/plan/schedule.h"

namespace mge {

// The estimated time of a wait between two queues in microseconds.
inline constexpr double kQueueWaitUs = 5;

// Moves kernels to further compute queues of their devices. Adds the queues that it uses. Kernels without an estimate take
// no time here.
void SpreadOverQueues(Schedule& schedule);

}  // namespace mge
