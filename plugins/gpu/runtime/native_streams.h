// SPDX-License-Identifier: Apache-2.0
// Streams of the driver that an application has created: runs are ordered with the work on them.
#pragma once

#include <cstdint>

#include "plugins/gpu/runtime/device.h"
#include "plugins/gpu/runtime/fence.h"

namespace mge::gpu {

// `stream` is a CUstream or hipStream_t of the device's primary context; 1: the default stream.
struct UserStreams {
  static Result Signal(Device& device, void* stream, Fence& fence, uint64_t value);
  static Result Wait(Device& device, void* stream, Fence& fence, uint64_t value);
};

}  // namespace mge::gpu
