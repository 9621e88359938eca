// SPDX-License-Identifier: Apache-2.0
// The turn of a run among the runs of a session that must not overlap: those that update states or exchange data with other
// ranks.
#pragma once

#include <condition_variable>
#include <mutex>
#include <utility>

#include "core/base/status.h"
#include "core/plugin/stop.h"

namespace mge {

// Gives one run its turn at a time. Thread-safe. Must outlive its guards.
class RunTurn {
 public:
  // Ends the turn when it is destroyed.
  class Guard {
   public:
    Guard() = default;
    explicit Guard(RunTurn& turn) : turn_(&turn) {}
    Guard(Guard&& other) noexcept : turn_(std::exchange(other.turn_, nullptr)) {}
    Guard& operator=(Guard&& other) noexcept {
      std::swap(turn_, other.turn_);
      return *this;
    }
    ~Guard() {
      if (turn_) turn_->End();
    }

   private:
    RunTurn* turn_ = nullptr;  // nullptr: there is no turn to end
  };

  // Waits until no other run has its turn, then takes it. Fails if `stop` is set meanwhile.
  absl::StatusOr<Guard> Take(const StopControl& stop) {
    std::unique_lock lock(mutex_);
    for (; taken_; ended_.wait_for(lock, kStopSlice)) MGE_RETURN_IF_ERROR(stop.CheckStop());
    taken_ = true;
    return Guard(*this);
  }

 private:
  void End() {
    std::lock_guard lock(mutex_);
    taken_ = false;
    ended_.notify_one();
  }

  std::mutex mutex_;
  std::condition_variable ended_;
  bool taken_ = false;
};

}  // namespace mge
