// SPDX-License-Identifier: Apache-2.0
// Signal handlers: they belong to the application. Some drivers install their own when they start.
//
//   mge::KeepSignalHandlers keep;   // around the calls that load and start the driver
#pragma once

#include <signal.h>

#include <array>

#include "mge/plugin/visibility.hpp"

namespace mge MGE_HIDDEN {

// Restores the handlers of all signals when it is destroyed. Call it where no other thread changes handlers.
class KeepSignalHandlers {
 public:
  KeepSignalHandlers() {
    for (int i = 1; i < NSIG; ++i) known_[i] = sigaction(i, nullptr, &before_[i]) == 0;
  }
  ~KeepSignalHandlers() {
    for (int i = 1; i < NSIG; ++i) {
      struct sigaction now = {};
      if (known_[i] && sigaction(i, nullptr, &now) == 0 && now.sa_sigaction != before_[i].sa_sigaction) {
        sigaction(i, &before_[i], nullptr);
      }
    }
  }
  KeepSignalHandlers(const KeepSignalHandlers&) = delete;
  KeepSignalHandlers& operator=(const KeepSignalHandlers&) = delete;

 private:
  std::array<bool, NSIG> known_ = {};
  std::array<struct sigaction, NSIG> before_ = {};
};

}  // namespace MGE_HIDDEN
