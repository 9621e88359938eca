// SPDX-License-Identifier: Apache-2.0
// What every round of some work loses for good.
#pragma once

#include <cstdint>
#include <functional>

#include "core/base/status.h"

namespace mge::conform {

struct Losses {
  int64_t heap = 0, device = 0;  // bytes of every round; 0: nothing, or not every time
  int64_t mapped = 0;            // the same of the process, where the heap loses nothing
};

struct LossPlan {
  int first = 1;   // rounds that fill caches, and are not looked at
  int rounds = 1;  // of each of the spans that are compared
  std::function<absl::Status()> round;
  std::function<void()> began;           // called after the first rounds
  std::function<int64_t()> device_used;  // bytes; by all who use the device
};

// Runs the rounds and compares: what grows once is a cache, a leak grows as much in every span. Nothing else in the process
// may take memory meanwhile.
absl::StatusOr<Losses> LossesOf(const LossPlan& plan);

}  // namespace mge::conform
