// SPDX-License-Identifier: Apache-2.0
// How the host waits for a queue.
#pragma once

#include <chrono>
#include <cstdint>

#include "core/base/status.h"
#include "core/plugin/device.h"
#include "core/plugin/stop.h"

namespace mge {

// Until the fence answers, or `stop` (nullable) says that the work may not go on. MGE_DEADLINE_EXCEEDED after `limit`.
absl::StatusOr<mge_code> WaitForFence(const mge_queue_api& api, mge_fence* fence, uint64_t value, const StopControl* stop,
                                      std::chrono::nanoseconds limit = std::chrono::nanoseconds::max());

// The end of all that a queue was given. Of a queue that has failed, too: a fence that carries a failure answers at once, so
// this one is fresh.
class QueueEnd {
 public:
  // MGE_DEADLINE_EXCEEDED: not yet. Else it is over, or could not be asked for want of memory, and the queue may be destroyed,
  // which waits. What it was given after the first call that said "not yet" is not reckoned with.
  mge_code Wait(const Device& device, mge_queue* queue, std::chrono::nanoseconds patience);

 private:
  mge_fence* fence_ = nullptr;  // the queue holds it until it answers
};

}  // namespace mge
