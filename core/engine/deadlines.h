// SPDX-License-Identifier: Apache-2.0
// Ends runs whose time is up: sets their stop flag, which kernels look at.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>

#include "core/plugin/stop.h"

namespace mge {

// One thread, started by the first watch. Safe from any thread; in a forked child a fresh thread takes over. Where no thread
// can be started, a deadline is still seen between steps.
class Deadlines {
 public:
  using Clock = std::chrono::steady_clock;
  struct Keeper;

  Deadlines() = default;
  ~Deadlines();  // no watch is left
  Deadlines(const Deadlines&) = delete;
  Deadlines& operator=(const Deadlines&) = delete;

  // While it lives, `stop` becomes kTimeIsUp at `at` unless it is set already. At its end that value is taken back, so that
  // the flag serves another run. Allocates nothing.
  class Watch {
   public:
    Watch(Deadlines& owner, Clock::time_point at, std::atomic<int32_t>& stop);
    ~Watch();
    Watch(const Watch&) = delete;
    Watch& operator=(const Watch&) = delete;

   private:
    friend class Deadlines;
    Keeper* keeper_;  // nullptr: nobody watches
    Clock::time_point at_;
    std::atomic<int32_t>& stop_;
    Watch *next_ = nullptr, *previous_ = nullptr;
  };

 private:
  Keeper* KeeperOfThisProcess();

  std::atomic<Keeper*> keeper_{nullptr};
};

}  // namespace mge
