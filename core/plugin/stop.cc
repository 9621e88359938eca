// SPDX-License-Identifier: Apache-2.0
#include "core/plugin/stop.h"

#include "core/base/errors.h"

namespace mge {

absl::Status StopControl::CheckStop() const {
  int32_t stop = cancel.load(std::memory_order_relaxed);
  if (stop == kStopAsked) return Fail(errors::kCancelled, "the run was cancelled");
  if (stop == kTimeIsUp || (deadline && std::chrono::steady_clock::now() > *deadline)) {
    return Fail(errors::kTimeout, "the run took longer than its time limit",
                {.fix = "allow more time, or look for the slow part with `mge plan MODEL --why`"});
  }
  return absl::OkStatus();
}

}  // namespace mge
