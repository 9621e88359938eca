// SPDX-License-Identifier: Apache-2.0
#include "core/plugin/sync_queue.h"

#include <utility>

#include "core/plugin/ask.h"

namespace mge {
namespace {

constexpr uint64_t kPatienceNs = 60'000'000'000;

}  // namespace

absl::StatusOr<std::unique_ptr<SyncQueue>> SyncQueue::Create(Device& device) {
  MGE_RETURN_IF_ERROR(device.Open());
  std::unique_ptr<SyncQueue> out(new SyncQueue(device));
  const mge_queue_api& api = *device.queue_api();
  MGE_RETURN_IF_ERROR(AskDevice(device, "making a queue", [&](mge_error* e) {
    return api.create(device.handle(), MGE_QUEUE_COMPUTE, &out->queue_, e);
  }));
  MGE_RETURN_IF_ERROR(AskDevice(device, "making a fence", [&](mge_error* e) {
    return api.fence_create(device.handle(), &out->fence_, e);
  }));
  return out;
}

void SyncQueue::End() {
  if (queue_) device_.queue_api()->destroy(std::exchange(queue_, nullptr));
  if (fence_) device_.queue_api()->fence_destroy(std::exchange(fence_, nullptr));
}

absl::Status SyncQueue::Finish() {
  const mge_queue_api& api = *device_.queue_api();
  ++value_;
  MGE_RETURN_IF_ERROR(AskDevice(device_, "signalling a fence", [&](mge_error* e) {
    return api.signal(queue_, fence_, value_, e);
  }));
  return AskDevice(device_, "waiting for a queue", [&](mge_error* e) {
    return api.host_wait(fence_, value_, kPatienceNs, e);
  });
}

absl::Status SyncQueue::Copy(void* to, const void* from, size_t bytes) {
  MGE_RETURN_IF_ERROR(AskDevice(device_, "copying", [&](mge_error* e) {
    return device_.queue_api()->copy(queue_, to, from, bytes, e);
  }));
  return Finish();
}

}  // namespace mge
