// SPDX-License-Identifier: Apache-2.0
#include "core/engine/run_state.h"

#include <algorithm>

#include "core/engine/instance_queues.h"

namespace mge {

RunState::Overdue RunState::LookAt() const {
  std::lock_guard lock(mutex_);
  Overdue out;
  if (!due_) return out;
  out.seconds = std::max(0.0, std::chrono::duration<double>(std::chrono::steady_clock::now() - *due_).count());
  const Unit* unit = at_.load(std::memory_order_acquire);
  if (!unit) return out;
  out.place = StepPlace(*unit);
  return out;
}

void RunState::Begin() {
  std::lock_guard lock(mutex_);
  due_ = deadline;
}

void RunState::End() {
  std::lock_guard lock(mutex_);
  due_.reset();
}

void RunState::Leave() {
  if (!at_.load(std::memory_order_relaxed)) return;
  std::lock_guard lock(mutex_);
  at_.store(nullptr, std::memory_order_relaxed);
}

}  // namespace mge
