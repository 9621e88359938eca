// SPDX-License-Identifier: Apache-2.0
// Queues of a device that does everything at once: what is enqueued is done when the call returns.
// A real device hands it to its driver here, and its fences are the driver's timeline semaphores or
// events.
#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstring>
#include <mutex>

#include "tables.h"

struct mge_queue {};

// A counter that only grows, and those who wait for it.
struct mge_fence {
  std::mutex mutex;
  std::condition_variable grown;
  uint64_t value = 0;
};

namespace mge::null {
namespace {

mge_code Create(mge_device*, int32_t, mge_queue** out, mge_error* error) noexcept {
  return Guard(error, [&] {
    *out = new mge_queue;
    return MGE_OK;
  });
}

void Destroy(mge_queue* queue) noexcept { delete queue; }

mge_code Copy(mge_queue*, void* destination, const void* source, uint64_t bytes,
              mge_error*) noexcept {
  std::memmove(destination, source, bytes);
  return MGE_OK;
}

mge_code FenceCreate(mge_device*, mge_fence** out, mge_error* error) noexcept {
  return Guard(error, [&] {
    *out = new mge_fence;
    return MGE_OK;
  });
}

void FenceDestroy(mge_fence* fence) noexcept { delete fence; }

// All that was enqueued before is done already. Where work can fail later, the fence carries the
// failure instead of the value, and everyone who waits for it gets that code and text.
mge_code Signal(mge_queue*, mge_fence* fence, uint64_t value, mge_error* error) noexcept {
  return Guard(error, [&] {
    std::lock_guard lock(fence->mutex);
    fence->value = std::max(fence->value, value);
    fence->grown.notify_all();
    return MGE_OK;
  });
}

mge_code HostWait(mge_fence* fence, uint64_t value, uint64_t timeout_ns,
                  mge_error* error) noexcept {
  return Guard(error, [&]() -> mge_code {
    std::unique_lock lock(fence->mutex);
    auto reached = [&] { return fence->value >= value; };
    if (timeout_ns == UINT64_MAX) {
      fence->grown.wait(lock, reached);
      return MGE_OK;
    }
    // Longer than a year would overflow the clock.
    auto timeout =
        std::chrono::nanoseconds(std::min<uint64_t>(timeout_ns, UINT64_C(31'536'000'000'000'000)));
    if (fence->grown.wait_for(lock, timeout, reached)) return MGE_OK;
    return Report(error, MGE_DEADLINE_EXCEEDED, "the fence was not reached in time");
  });
}

// A real queue lets the device wait and returns at once.
mge_code Wait(mge_queue*, mge_fence* fence, uint64_t value, mge_error* error) noexcept {
  return HostWait(fence, value, UINT64_MAX, error);
}

}  // namespace

const mge_queue_api kQueueTable = Table<mge_queue_api>([](auto& t) {
  t.create = Create;
  t.destroy = Destroy;
  t.copy = Copy;
  t.fence_create = FenceCreate;
  t.fence_destroy = FenceDestroy;
  t.signal = Signal;
  t.wait = Wait;
  t.host_wait = HostWait;
  // Capture and replay, all four or none: kernels marked MGE_KERNEL_CAPTURE_SAFE are then
  // recorded once and replayed.
  t.capture_begin = nullptr;
  t.capture_end = nullptr;
  t.replay = nullptr;
  t.record_destroy = nullptr;
});

}  // namespace mge::null
