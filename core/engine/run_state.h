// SPDX-License-Identifier: Apache-2.0
// The control of one run and of all runs nested in it: cancel flag, deadline, seed, threads.
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

class RunControl;  // core/engine/run_control.h

// The state of one run. The caller owns it, and it must outlive the run.
struct RunState : StopControl {
  // A run under a control uses the settings of that control at this time, and its time limit starts now. nullptr: no control,
  // no time limit.
  explicit RunState(RunControl* by = nullptr);
  ~RunState() { Detach(); }
  RunState(const RunState&) = delete;
  RunState& operator=(const RunState&) = delete;
  // Removes the run from its control, which may then be destroyed.
  void Detach();

  uint64_t seed = 0;         // 0: that of the session's settings
  uint64_t next_random = 0;  // the next Philox block, or seed of a host step; Session::Submit() sets the first one
  uint32_t width = 1;        // threads of the compute pool that the run may use
  ComputePool* pool = nullptr;
  RunObserver* observer = nullptr;  // nullable
  std::optional<int> priority;      // of an asynchronous run; unset: it has none
  uint64_t staged_bytes = 0;        // set by the run: bytes copied between plain and page-locked host memory
  uint64_t operations = 0;          // set by the run: operations of the dependency engine in which its plans ran

  // ---- for a caller that waits for a run past its deadline, because a kernel does not read its stop flag
  struct Overdue {
    double seconds = 0;  // time since the deadline of the present run; 0 if there is no run or deadline
    std::string place;   // the present step, or the first step of the latest enqueued segment; empty outside of steps
  };
  // Returns how long the run is past its deadline, and where. Safe on any thread.
  Overdue LookAt() const;

  // ---- for the thread of the run
  // Marks the beginning and the end of a run with a deadline.
  void Begin();
  void End();
  // Sets the present unit. It must stay valid until Leave() or the next Enter().
  void Enter(const Unit& unit) { at_.store(&unit, std::memory_order_release); }
  void Leave();

 private:
  friend class RunControl;
  RunControl* by_;
  RunState *next_ = nullptr, *previous_ = nullptr;  // the runs under the same control; guarded by its mutex
  mutable std::mutex mutex_;                        // guards due_, and keeps *at_ alive in LookAt()
  std::optional<std::chrono::steady_clock::time_point> due_;
  std::atomic<const Unit*> at_{nullptr};
};

}  // namespace mge
