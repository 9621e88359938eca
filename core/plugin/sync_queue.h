// SPDX-License-Identifier: Apache-2.0
// A queue of a device for work whose end the caller waits for: uploads, trials of kernels, and looks at memory that only the
// device reaches.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "core/base/status.h"
#include "core/plugin/device.h"
#include "core/plugin/stop.h"

namespace mge {

// For one thread at a time. Borrows the device. After an error of Finish() or a copy it is of no further use: it goes on
// failing, or something on it does not end.
class SyncQueue {
 public:
  // Bytes of page-locked memory that copies need at least; they take more where there is more.
  static constexpr size_t kLeastStaging = 8 << 10;

  // Opens the device, which has queues.
  static absl::StatusOr<std::unique_ptr<SyncQueue>> Create(Device& device, int32_t kind = MGE_QUEUE_COMPUTE);
  // What does not end although it has been told to is kept aside by the device.
  ~SyncQueue();
  SyncQueue(const SyncQueue&) = delete;
  SyncQueue& operator=(const SyncQueue&) = delete;

  mge_queue* handle() const;
  const int32_t* cancel() const;  // for mge_run: set when nobody waits any more

  // Whether all that was enqueued is; waits for it, at most so long. Also of a queue that failed.
  bool Over(std::chrono::nanoseconds patience);
  // What is enqueued before the next Finish() or the end of the next Download() may touch it.
  void Uses(std::shared_ptr<void> memory);
  // Waits until everything that was enqueued is done. kTimeout after a minute; what `stop` (nullable) says.
  absl::Status Finish(const StopControl* stop = nullptr);
  // From host memory to the device's, in pieces through page-locked memory of the queue's own: while one is on its way, the
  // next one is staged. Done after Finish(), `from` is free at once.
  absl::Status Upload(void* to, const void* from, size_t bytes, const StopControl* stop = nullptr);
  // The other way. Done when it returns.
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
