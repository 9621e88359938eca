// SPDX-License-Identifier: Apache-2.0
#include "core/engine/run_control.h"

#include <chrono>
#include <utility>

namespace mge {

void RunControl::SetTimeout(double seconds) {
  std::lock_guard lock(mutex_);
  timeout_s_ = seconds;
}

void RunControl::SetSeed(uint64_t seed) {
  std::lock_guard lock(mutex_);
  seed_ = seed;
}

void RunControl::SetPriority(int priority) {
  std::lock_guard lock(mutex_);
  priority_ = priority;
}

void RunControl::Cancel() {
  std::lock_guard lock(mutex_);
  cancelled_ = true;
  for (RunState* run = runs_; run; run = run->next_) run->cancel.store(kStopAsked);
}

void RunControl::Reset() {
  std::lock_guard lock(mutex_);
  cancelled_ = false;
}

RunState::Overdue RunControl::LookAt() const {
  std::lock_guard lock(mutex_);
  RunState::Overdue worst;
  for (const RunState* run = runs_; run; run = run->next_) {
    RunState::Overdue one = run->LookAt();
    if (one.seconds > worst.seconds) worst = std::move(one);
  }
  return worst;
}

RunState::RunState(RunControl* by) : by_(by) {
  if (!by) return;
  std::lock_guard lock(by->mutex_);
  seed = by->seed_;
  priority = by->priority_;
  constexpr double kLongest = 1e9;  // seconds; larger values overflow a 64-bit count of nanoseconds
  if (by->timeout_s_ > 0 && by->timeout_s_ <= kLongest) {
    const std::chrono::duration<double> limit(by->timeout_s_);
    deadline = std::chrono::steady_clock::now() + std::chrono::duration_cast<std::chrono::steady_clock::duration>(limit);
  }
  if (by->cancelled_) cancel.store(kStopAsked);
  next_ = by->runs_;
  if (next_) next_->previous_ = this;
  by->runs_ = this;
}

void RunState::Detach() {
  RunControl* by = std::exchange(by_, nullptr);
  if (!by) return;
  std::lock_guard lock(by->mutex_);
  (previous_ ? previous_->next_ : by->runs_) = next_;
  if (next_) next_->previous_ = previous_;
}

}  // namespace mge
