// SPDX-License-Identifier: Apache-2.0
// Deadlines of runs: sets the stop flag of a run when its time is up. Kernels read the flag.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>

#include "core/plugin/stop.h"

namespace mge {

// The deadlines of a runtime, with one thread that the first watch starts. Safe on any thread. A forked child starts a new
// thread. If no thread can be started, deadlines are checked between steps only.
class Deadlines {
 public:
  using Clock = std::chrono::steady_clock;
  struct Keeper;

  Deadlines() = default;
  ~Deadlines();  // all watches must have been destroyed
  Deadlines(const Deadlines&) = delete;
  Deadlines& operator=(const Deadlines&) = delete;

  // A deadline of one run. Sets `stop` to kTimeIsUp at the time `at`, unless it is set already. The destructor resets
  // kTimeIsUp to kGoOn, so that the flag can serve another run. `owner` and `stop` must outlive the watch. Allocates no
  // memory, except for the first watch of a process.
  class Watch {
   public:
    Watch(Deadlines& owner, Clock::time_point at, std::atomic<int32_t>& stop);
    ~Watch();
    Watch(const Watch&) = delete;
    Watch& operator=(const Watch&) = delete;

   private:
    friend class Deadlines;
    Keeper* keeper_;  // nullptr: no thread could be started
    Clock::time_point at_;
    std::atomic<int32_t>& stop_;
    Watch *next_ = nullptr, *previous_ = nullptr;
  };

 private:
  // Returns the keeper of this process. Creates it after a fork or at the first call. Returns nullptr if it cannot be
  // created.
  Keeper* KeeperOfThisProcess();

  std::atomic<Keeper*> keeper_{nullptr};
};

}  // namespace mge
