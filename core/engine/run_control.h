// SPDX-License-Identifier: Apache-2.0
// What steers one run and all runs nested in it.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <optional>

#include "core/base/status.h"
#include "core/engine/compute_pool.h"
#include "core/engine/deadlines.h"
#include "core/plan/plan.h"

namespace mge {

// Owned by the caller; cancel may be set from any thread, to kStopAsked.
struct RunControl {
  std::atomic<int32_t> cancel{kGoOn};
  std::optional<std::chrono::steady_clock::time_point> deadline;
  uint64_t seed = 0;
  uint32_t width = 1;  // threads of the compute pool
  ComputePool* pool = nullptr;
  // Called after every step of the calling thread if set: for profiles. `ns` is the step's time.
  void (*on_step)(void* self, const Plan& plan, int step, int64_t ns) = nullptr;
  void* on_step_self = nullptr;

  absl::Status CheckStop() const;  // kCancelled, kTimeout
};

}  // namespace mge
