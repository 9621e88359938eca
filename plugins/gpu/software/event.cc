// SPDX-License-Identifier: Apache-2.0
#include "plugins/gpu/software/event.h"

#include <algorithm>
#include <iterator>

namespace mge::software {

Event::~Event() {
  for (auto& [value, action] : actions_) action();
}

// Removes and returns the actions that are due. The caller holds the lock, and runs them without it.
Event::Actions Event::TakeDue() {
  Actions due;
  for (auto at = actions_.begin(); at != actions_.end();) {
    auto next = std::next(at);
    if (Over(at->first)) due.splice(due.end(), actions_, at);
    at = next;
  }
  return due;
}

bool Event::IsOver(uint64_t value) const {
  std::lock_guard lock(mutex_);
  return Over(value);
}

void Event::Signal(uint64_t value) {
  Actions due;
  {
    std::lock_guard lock(mutex_);
    if (failure_) return;
    value_ = std::max(value_, value);
    due = TakeDue();
    changed_.notify_all();
  }
  for (auto& [at, action] : due) action();
}

void Event::Fail(const FailurePtr& failure) {
  Actions due;
  {
    std::lock_guard lock(mutex_);
    if (failure_) return;
    failure_ = failure;
    due = TakeDue();
    changed_.notify_all();
  }
  for (auto& [at, action] : due) action();
}

void Event::Then(uint64_t value, Actions actions) noexcept {
  for (auto& [at, action] : actions) at = value;
  {
    std::lock_guard lock(mutex_);
    if (!Over(value)) actions_.splice(actions_.end(), actions);
  }
  for (auto& [at, action] : actions) action();
}

Event::Answer Event::HostWait(uint64_t value, uint64_t timeout_ns) {
  std::unique_lock lock(mutex_);
  auto over = [&] { return Over(value); };
  if (timeout_ns == UINT64_MAX) {
    changed_.wait(lock, over);
  } else {
    // A timeout longer than a year would overflow the clock.
    std::chrono::nanoseconds timeout(std::min<uint64_t>(timeout_ns, UINT64_C(31'536'000'000'000'000)));
    changed_.wait_for(lock, timeout, over);
  }
  Answer answer = Now(value);
  if (answer.failure) {
    Clock::rep never = Clock::duration::max().count();
    answer.failure->told.compare_exchange_strong(never, Clock::now().time_since_epoch().count());
  }
  return answer;
}

Event::Answer Event::Wait(uint64_t value, const std::atomic<bool>& give_up) {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return Over(value) || give_up; });
  return Now(value);
}

void Event::Wake() {
  std::lock_guard lock(mutex_);
  changed_.notify_all();
}

}  // namespace mge::software
