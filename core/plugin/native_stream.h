// SPDX-License-Identifier: Apache-2.0
// A stream of the driver that the application has created: runs are ordered with the work on it.
#pragma once

#include <cstdint>

#include "core/base/status.h"
#include "core/plugin/device.h"
#include "mge/native_streams.h"

namespace mge {

// A stream of the application on a device, which must outlive this object. The application keeps the stream.
class NativeStream {
 public:
  // Opens the device. Fails with kDeviceUnusable if its backend has no queues, or cannot use streams of the application.
  static absl::StatusOr<NativeStream> On(Device& device, void* handle);

  Device& device() const { return *device_; }
  // Sets a fence of the device to `value` when all work that is now on the stream is done.
  absl::Status Signal(mge_fence* fence, uint64_t value) const;
  // Delays later work of the stream until a fence of the same backend has reached `value`, which was enqueued.
  absl::Status Wait(mge_fence* fence, uint64_t value) const;

 private:
  NativeStream(Device& device, void* handle, const mge_native_streams_api* api)
      : device_(&device), handle_(handle), api_(api) {}

  Device* device_;
  void* handle_;
  const mge_native_streams_api* api_;
};

}  // namespace mge
