// SPDX-License-Identifier: Apache-2.0
// Whether work that somebody waits for may go on.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <optional>

#include "core/base/status.h"

namespace mge {

// Values of a stop flag; what a kernel sees is only whether it is zero.
inline constexpr int32_t kGoOn = 0, kStopAsked = 1, kTimeIsUp = 2;
inline constexpr std::chrono::milliseconds kStopSlice{10};  // whoever waits looks at it so often

// Owned by whoever waits; cancel may be set from any thread, to kStopAsked.
struct StopControl {
  std::atomic<int32_t> cancel{kGoOn};
  std::optional<std::chrono::steady_clock::time_point> deadline;

  absl::Status CheckStop() const;  // kCancelled, kTimeout
  const int32_t* flag() const { return reinterpret_cast<const int32_t*>(&cancel); }  // as mge_run.cancel
};

}  // namespace mge
