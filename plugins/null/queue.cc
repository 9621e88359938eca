// SPDX-License-Identifier: Apache-2.0
// Synchronous queues: work is done when the call returns. For a real device, pass the work to the driver here and return.
#include <cstring>

#include "backend.h"

namespace backend {

// Copies between two addresses of the device, or between the device and host memory.
mge::Result Queue::Copy(void* destination, const void* source, uint64_t bytes) {
  std::memmove(destination, source, bytes);
  return {};
}

// Sets the fence to `value` when all work enqueued before is done. A real queue records an event of the driver here, and the
// fence keeps it until it is reached. If earlier work of this queue fails, this signal and all later ones carry the failure.
mge::Result Queue::Signal(Fence& fence, uint64_t value) {
  fence.Reach(value);
  return {};
}

// Delays later work until the fence has reached `value`. The host has enqueued the signal of that value before. A real queue
// lets the device wait for the value's event, and returns at once. Here the signal is over already.
mge::Result Queue::Wait(Fence&, uint64_t /*value*/) { return {}; }

// Blocks until the fence has reached `value`, at most timeout_ns. From any thread. The signal has been enqueued before, so
// here it is over already. With a driver, return MGE_DEADLINE_EXCEEDED after the timeout, and the failure, if there is one,
// with a text of at most 15 characters: longer ones allocate memory.
mge::Result Fence::HostWait(uint64_t value, uint64_t /*timeout_ns*/) {
  return value_ >= value ? mge::Result() : mge::Result(MGE_FAILED_PRECONDITION, "never signalled");
}

// Records the time at which all work enqueued before is done. This queue is synchronous, so that is the current time. An
// asynchronous queue takes the stamp when it reaches it.
mge::Result Stamp::Take(Queue&) {
  taken_ns_ = mge::Host()->clock_ns(mge::Host()->self);
  return {};
}

mge::Result Stamp::ElapsedUs(Stamp& from, Stamp& to, double* out) {
  *out = static_cast<double>(to.taken_ns_ - from.taken_ns_) / 1000;
  return {};
}

}  // namespace backend
