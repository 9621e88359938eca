// SPDX-License-Identifier: Apache-2.0
// Ctrl-C as the end of the present run instead of the process.
#pragma once

#include <signal.h>

#include <atomic>

#include "core/base/thread.h"
#include "mge/mge.hpp"

namespace mge::cli {

// While it lives, the first SIGINT cancels the runs of `control`, and a second one ends the process. Create it before any other thread:
// they inherit that the signal is blocked.
class Interrupt {
 public:
  explicit Interrupt(RunControl& control);
  ~Interrupt();
  Interrupt(const Interrupt&) = delete;
  Interrupt& operator=(const Interrupt&) = delete;
  bool received() const { return received_; }

 private:
  void Wait();

  RunControl& control_;
  sigset_t signals_, before_;
  std::atomic<bool> received_{false}, end_{false};
  Thread thread_;  // the last member, because the thread uses the others
};

}  // namespace mge::cli
