// SPDX-License-Identifier: Apache-2.0
// A queue of a device for work whose end the caller waits for: trials of kernels, and looks at memory that only the device
// reaches.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "core/base/status.h"
#include "core/plugin/device.h"

namespace mge {

// For one thread at a time. Borrows the device.
class SyncQueue {
 public:
  // Opens the device, which has queues.
  static absl::StatusOr<std::unique_ptr<SyncQueue>> Create(Device& device);
  ~SyncQueue() { End(); }
  SyncQueue(const SyncQueue&) = delete;
  SyncQueue& operator=(const SyncQueue&) = delete;

  mge_queue* handle() const { return queue_; }
  // Waits until everything that was enqueued is done. kTimeout after a minute.
  absl::Status Finish();
  // One address is of the device, the other in host memory. Done when it returns.
  absl::Status Copy(void* to, const void* from, size_t bytes);
  // Nothing that was enqueued touches memory any more, and nothing more can be enqueued: for a queue that failed, as it goes
  // on failing.
  void End();

 private:
  explicit SyncQueue(Device& device) : device_(device) {}

  Device& device_;
  mge_queue* queue_ = nullptr;
  mge_fence* fence_ = nullptr;
  uint64_t value_ = 0;
};

}  // namespace mge
