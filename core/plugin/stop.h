// SPDX-License-Identifier: Apache-2.0
// The cancel flag and the deadline of a run.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <optional>

#include "core/base/status.h"

namespace mge {

// Values of the cancel flag. A kernel checks only whether the flag is zero.
inline constexpr int32_t kGoOn = 0, kStopAsked = 1, kTimeIsUp = 2;
inline constexpr std::chrono::milliseconds kStopSlice{10};  // the interval at which a waiting thread checks the flag

// The stop request of one run. Owned by the thread that waits for the run. Any thread may set `cancel` to kStopAsked.
struct StopControl {
  std::atomic<int32_t> cancel{kGoOn};
  std::optional<std::chrono::steady_clock::time_point> deadline;

  absl::Status CheckStop() const;  // fails with kCancelled or kTimeout if the run must stop
  const int32_t* flag() const { return reinterpret_cast<const int32_t*>(&cancel); }  // the value for mge_run.cancel
};

// Checks the stop request of a run. Returns OK if `stop` is nullptr.
inline absl::Status CheckStop(const StopControl* stop) { return stop ? stop->CheckStop() : absl::OkStatus(); }

}  // namespace mge
