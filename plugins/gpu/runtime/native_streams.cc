// SPDX-License-Identifier: Apache-2.0
#include "plugins/gpu/runtime/native_streams.h"

namespace mge::gpu {
namespace {

// CUDA knows its default stream as CU_STREAM_LEGACY, which is 1. For HIP, it is null.
void* ForDriver(void* stream) { return TheVendor().is_hip && reinterpret_cast<uintptr_t>(stream) == 1 ? nullptr : stream; }

}  // namespace

Result UserStreams::Signal(Device& device, void* stream, Fence& fence, uint64_t value) {
  return device.With([&] {
    return fence.Signal(value, nullptr, [&](const DriverEvent& event) {
      return Call(TheDriver().event_record, event.handle, ForDriver(stream));
    });
  });
}

Result UserStreams::Wait(Device& device, void* stream, Fence& fence, uint64_t value) {
  return device.With([&] {
    return fence.Wait(
        value, [&](const DriverEvent& event) { return Call(TheDriver().stream_wait, ForDriver(stream), event.handle, 0u); });
  });
}

}  // namespace mge::gpu
