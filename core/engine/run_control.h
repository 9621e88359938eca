// SPDX-License-Identifier: Apache-2.0
// What steers one run and all runs nested in it.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <mutex>
#include <optional>
#include <string>

#include "core/engine/compute_pool.h"
#include "core/engine/run_observer.h"
#include "core/plan/plan.h"
#include "core/plugin/stop.h"

namespace mge {

struct RunControl : StopControl {
  uint64_t seed = 0;
  uint32_t width = 1;  // threads of the compute pool
  ComputePool* pool = nullptr;
  RunObserver* observer = nullptr;  // nullable

  // ---- for those who wait in vain for a run with a deadline, which is a kernel that does not look at its stop flag
  struct Overdue {
    double seconds = 0;  // past the deadline of the run that is on
    std::string place;   // the step that it is in, or the first of those enqueued last; empty between steps and in planning
  };
  Overdue LookAt() const;  // any thread

  // The run's own: it begins and ends, and is in a unit of a plan that lives until it has left it.
  void Begin();
  void End();
  void Enter(const Unit& unit) { at_.store(&unit, std::memory_order_release); }
  void Leave();

 private:
  mutable std::mutex mutex_;  // of the time, and of what `at_` points to
  std::optional<std::chrono::steady_clock::time_point> due_;
  std::atomic<const Unit*> at_{nullptr};
};

}  // namespace mge
