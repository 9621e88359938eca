// SPDX-License-Identifier: Apache-2.0
#include "core/plugin/queue_wait.h"

#include <algorithm>
#include <utility>

#include "core/plugin/abi_call.h"

namespace mge {

absl::StatusOr<mge_code> WaitForFence(const mge_queue_api& api, mge_fence* fence, uint64_t value, const StopControl* stop,
                                      std::chrono::nanoseconds limit) {
  for (std::chrono::nanoseconds left = limit;; left -= kStopSlice) {
    const auto slice = static_cast<uint64_t>(std::clamp<std::chrono::nanoseconds>(left, {}, kStopSlice).count());
    mge_error error;
    const mge_code code = CallBackend(error, [&](mge_error*) {
      return api.host_wait(fence, value, slice, nullptr);  // without an error: a text per slice would allocate memory
    });
    if (code != MGE_DEADLINE_EXCEEDED || left <= kStopSlice) return code;
    if (stop) MGE_RETURN_IF_ERROR(stop->CheckStop());
  }
}

mge_code QueueEnd::Wait(const Device& device, mge_queue* queue, std::chrono::nanoseconds patience) {
  const mge_queue_api& api = *device.queue_api();
  mge_error error;
  mge_code code = MGE_OK;
  if (!fence_) {
    code = CallBackend(error, [&](mge_error* e) { return api.fence_create(device.handle(), &fence_, e); });
    if (code == MGE_OK) code = CallBackend(error, [&](mge_error* e) { return api.signal(queue, fence_, 1, e); });
  }
  if (code == MGE_OK) {
    const auto ns = static_cast<uint64_t>(std::max<int64_t>(patience.count(), 0));
    code = CallBackend(error, [&](mge_error* e) { return api.host_wait(fence_, 1, ns, e); });
    if (code == MGE_DEADLINE_EXCEEDED) return code;
  }
  if (fence_) api.fence_destroy(std::exchange(fence_, nullptr));
  return code;
}

}  // namespace mge
