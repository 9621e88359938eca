// SPDX-License-Identifier: Apache-2.0
// A device queue for work that the caller waits for: uploads, timing of kernels, and reading memory that only the device can
// access.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "core/base/status.h"
#include "core/plugin/device.h"
#include "core/plugin/stop.h"

namespace mge {

// A queue with staging memory for copies. Not thread-safe. The device must outlive it. After an error of Finish(), Upload()
// or Download() the queue must be destroyed: it keeps failing, or its work does not end.
class SyncQueue {
 public:
  // The minimum of page-locked memory that a copy needs, in bytes. A copy uses up to 8 MiB if that much is available.
  static constexpr size_t kMinStaging = 8 << 10;

  // Opens the device and creates a queue. The device must have a queue table.
  static absl::StatusOr<std::unique_ptr<SyncQueue>> Create(Device& device, int32_t kind = MGE_QUEUE_COMPUTE);
  // Sets the cancel flag and waits up to kPatience. Work that has not ended then is passed to Device::Keep().
  ~SyncQueue();
  SyncQueue(const SyncQueue&) = delete;
  SyncQueue& operator=(const SyncQueue&) = delete;

  mge_queue* handle() const;
  const int32_t* cancel() const;  // the value for mge_run.cancel; set by the destructor

  // Waits up to `patience` for all enqueued work, also of a queue that failed. Returns whether it is over.
  bool Over(std::chrono::nanoseconds patience);
  // Keeps `memory` alive until the next Finish() or Download() has succeeded. Use it for memory that enqueued work accesses.
  void Uses(std::shared_ptr<void> memory);
  // Waits until all enqueued work is done. Fails if a wait exceeds one minute, with the status of `stop` (optional), or with
  // the error of the device.
  absl::Status Finish(const StopControl* stop = nullptr);
  // Copies host memory to the device, in pieces through two halves of page-locked memory: while one half is copied, the
  // other is filled. The copy is done after Finish(). `from` is not accessed after the return.
  absl::Status Upload(void* to, const void* from, size_t bytes, const StopControl* stop = nullptr);
  // Copies device memory to the host. The copy is done at the return.
  absl::Status Download(void* to, const void* from, size_t bytes, const StopControl* stop = nullptr);

 private:
  struct State;
  explicit SyncQueue(std::unique_ptr<State> state);
  absl::Status Wait(uint64_t value, const StopControl* stop);
  absl::Status Signal();
  absl::Status Stage(size_t bytes, const StopControl* stop);

  std::unique_ptr<State> state_;
};

}  // namespace mge
