// SPDX-License-Identifier: Apache-2.0
// The run control of the API. One control may govern several runs, one after another or at the same time.
#pragma once

#include <cstdint>
#include <mutex>
#include <optional>

#include "core/engine/run_state.h"

namespace mge {

// A control object of the API. Thread-safe. It must outlive its runs, up to RunState::Detach().
class RunControl {
 public:
  // Sets the time limit of later runs, in seconds. Values <= 0 or > 1e9 disable it.
  void SetTimeout(double seconds);
  // Sets the seed of later runs.
  void SetSeed(uint64_t seed);
  // Sets the priority of later asynchronous runs.
  void SetPriority(int priority);
  // Cancels the present runs and, until Reset(), all later ones.
  void Cancel();
  void Reset();
  // Returns the state of the run that is furthest past its deadline.
  RunState::Overdue LookAt() const;

 private:
  friend struct RunState;
  mutable std::mutex mutex_;
  double timeout_s_ = 0;
  uint64_t seed_ = 0;
  std::optional<int> priority_;
  bool cancelled_ = false;
  RunState* runs_ = nullptr;
};

}  // namespace mge
