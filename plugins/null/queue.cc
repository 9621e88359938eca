// SPDX-License-Identifier: Apache-2.0
// Synchronous queues: work is done when the call returns. For a real device, pass the work to the driver here and return.
#include <algorithm>
#include <chrono>
#include <cstring>

#include "backend.h"

namespace backend {

// Copies between two addresses of the device, or between the device and host memory.
mge::Result Queue::Copy(void* destination, const void* source, uint64_t bytes) {
  std::memmove(destination, source, bytes);
  return {};
}

// Sets the fence to `value` when all work enqueued before is done. If work can fail later, the fence must carry the failure
// instead, and every waiter must receive its code and text.
mge::Result Queue::Signal(Fence& fence, uint64_t value) {
  fence.Reach(value);
  return {};
}

// Delays later work until the fence has reached `value`. A real queue lets the device wait, and returns at once.
mge::Result Queue::Wait(Fence& fence, uint64_t value) { return fence.HostWait(value, UINT64_MAX); }

void Fence::Reach(uint64_t value) {
  std::lock_guard lock(mutex_);
  value_ = std::max(value_, value);
  grown_.notify_all();
}

// Blocks until the fence has reached `value`, at most timeout_ns. From any thread.
mge::Result Fence::HostWait(uint64_t value, uint64_t timeout_ns) {
  std::unique_lock lock(mutex_);
  auto reached = [&] { return value_ >= value; };
  if (timeout_ns == UINT64_MAX) {
    grown_.wait(lock, reached);
    return {};
  }
  constexpr uint64_t kYear = UINT64_C(31'536'000'000'000'000);  // a longer time would overflow the clock
  if (grown_.wait_for(lock, std::chrono::nanoseconds(std::min(timeout_ns, kYear)), reached)) return {};
  return {MGE_DEADLINE_EXCEEDED, "timed out"};  // a short text, for which std::string allocates nothing
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
