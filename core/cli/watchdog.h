// SPDX-License-Identifier: Apache-2.0
// Ends the process if a run is far beyond its time limit. There is no other way to stop a kernel that ignores its stop flag.
#pragma once

#include <condition_variable>
#include <mutex>

#include "core/base/thread.h"
#include "core/cli/command.h"
#include "mge/mge.hpp"

namespace mge::cli {

// Watches the runs of `control` on its own thread until it is destroyed. Both arguments must outlive it.
class Watchdog {
 public:
  Watchdog(const Globals& globals, const RunControl& control);
  ~Watchdog();
  Watchdog(const Watchdog&) = delete;
  Watchdog& operator=(const Watchdog&) = delete;

 private:
  void Watch();

  const Globals& globals_;
  const RunControl& control_;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool end_ = false;
  Thread thread_;  // the last member, because the thread uses the others
};

}  // namespace mge::cli
