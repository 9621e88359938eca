// SPDX-License-Identifier: Apache-2.0
// Queues of a device that does everything at once: what is enqueued is done when the call returns. A real device hands the work
// to its driver here, and returns.
#include <algorithm>
#include <chrono>
#include <cstring>

#include "backend.h"

namespace backend {

// Between two addresses of the device, or of one and host memory.
mge::Result Queue::Copy(void* destination, const void* source, uint64_t bytes) {
  std::memmove(destination, source, bytes);
  return {};
}

// When all that was enqueued before is done, the fence becomes `value`. Where work can fail later, the fence carries the
// failure in place of the value, and everyone who waits for it gets that code and text.
mge::Result Queue::Signal(Fence& fence, uint64_t value) {
  fence.Reach(value);
  return {};
}

// What is enqueued later begins when the fence has reached `value`. A real queue lets the device wait, and returns at once.
mge::Result Queue::Wait(Fence& fence, uint64_t value) { return fence.HostWait(value, UINT64_MAX); }

void Fence::Reach(uint64_t value) {
  std::lock_guard lock(mutex_);
  value_ = std::max(value_, value);
  grown_.notify_all();
}

// From any thread.
mge::Result Fence::HostWait(uint64_t value, uint64_t timeout_ns) {
  std::unique_lock lock(mutex_);
  auto reached = [&] { return value_ >= value; };
  if (timeout_ns == UINT64_MAX) {
    grown_.wait(lock, reached);
    return {};
  }
  constexpr uint64_t kYear = UINT64_C(31'536'000'000'000'000);  // longer would overflow the clock
  if (grown_.wait_for(lock, std::chrono::nanoseconds(std::min(timeout_ns, kYear)), reached)) return {};
  return {MGE_DEADLINE_EXCEEDED, "the fence was not reached in time"};
}

// The time at which all that was enqueued before is done. That is now, for the queue does everything at once; where it only
// enqueues, the queue takes the stamp when it comes to it.
mge::Result Stamp::Take(Queue&) {
  taken_ns_ = mge::Host()->clock_ns(mge::Host()->self);
  return {};
}

mge::Result Stamp::ElapsedUs(Stamp& from, Stamp& to, double* out) {
  *out = static_cast<double>(to.taken_ns_ - from.taken_ns_) / 1000;
  return {};
}

}  // namespace backend
