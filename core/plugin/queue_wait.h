// SPDX-License-Identifier: Apache-2.0
// Functions with which the host waits for a fence and for the end of a queue. They wait in short slices, so that a run can
// be cancelled although the backend's own wait cannot.
#pragma once

#include <chrono>
#include <cstdint>

#include "core/base/status.h"
#include "core/plugin/device.h"
#include "core/plugin/stop.h"

namespace mge {

// Waits for a fence in slices of kStopSlice. Returns the code of the fence, or MGE_DEADLINE_EXCEEDED after `limit`. Fails
// with the status of `stop` (optional) if the work must stop.
absl::StatusOr<mge_code> WaitForFence(const mge_queue_api& api, mge_fence* fence, uint64_t value, const StopControl* stop,
                                      std::chrono::nanoseconds limit = std::chrono::nanoseconds::max());

// The end of the work on a queue, also of a queue that has failed. It uses a new fence, because the fences of a failed queue
// are reached at once. Not thread-safe.
class QueueEnd {
 public:
  // Waits up to `patience`. Returns MGE_DEADLINE_EXCEEDED if the work is not over. Any other code means that the work is
  // over, or that no fence could be created; then the queue may be destroyed (destroying it waits). Work that is enqueued
  // after the first call is not waited for.
  mge_code Wait(const Device& device, mge_queue* queue, std::chrono::nanoseconds patience);

 private:
  mge_fence* fence_ = nullptr;  // in use by the queue until it is reached
};

}  // namespace mge
