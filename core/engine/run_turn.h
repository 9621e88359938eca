// SPDX-License-Identifier: Apache-2.0
// The turn of a run among the runs of a session that must not overlap: those that update states or exchange data with other
// ranks.
#pragma once

#include <condition_variable>
#include <mutex>

#include "core/base/status.h"
#include "core/plugin/stop.h"

namespace mge {

// Gives one run its turn at a time. Thread-safe.
class RunTurn {
 public:
  // Waits until no other run has its turn, then takes it. Fails if `stop` is set meanwhile.
  absl::Status Take(const StopControl& stop) {
    std::unique_lock lock(mutex_);
    for (; taken_; ended_.wait_for(lock, kStopSlice)) MGE_RETURN_IF_ERROR(stop.CheckStop());
    taken_ = true;
    return absl::OkStatus();
  }
  void End() {
    std::lock_guard lock(mutex_);
    taken_ = false;
    ended_.notify_one();
  }

 private:
  std::mutex mutex_;
  std::condition_variable ended_;
  bool taken_ = false;
};

}  // namespace mge
