// SPDX-License-Identifier: Apache-2.0
// Ends the process when a run is far past its time limit: a kernel that does not look at its stop flag cannot be stopped
// otherwise.
#pragma once

#include <condition_variable>
#include <mutex>
#include <thread>

#include "core/cli/command.h"
#include "mge/mge.hpp"

namespace mge::cli {

// Watches the runs of `control` as long as it lives.
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
  std::thread thread_;  // last: it uses all the others
};

}  // namespace mge::cli
