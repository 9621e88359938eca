// SPDX-License-Identifier: Apache-2.0
#include "plugins/gpu/software/event.h"

#include <algorithm>
#include <iterator>

#include "plugins/gpu/launch.h"

namespace mge::software {

Event::~Event() {
  for (auto& [value, action] : actions_) action();
}

Result Event::CheckSignal(uint64_t value) const {
  std::lock_guard lock(mutex_);
  if (value > announced_) return {};
  return {MGE_FAILED_PRECONDITION, "a signal of the fence with " + std::to_string(value) + " after one with " +
                                       std::to_string(announced_) + "; its values must increase"};
}

Result Event::CheckWait(uint64_t value) const {
  std::lock_guard lock(mutex_);
  if (value <= announced_ || lost_) return {};
  return {MGE_FAILED_PRECONDITION,
          "a wait for a fence to reach " + std::to_string(value) + ", but no signal of that value has been enqueued before"};
}

void Event::Announce(uint64_t value) {
  std::lock_guard lock(mutex_);
  announced_ = value;
}

// Wakes the waiters and runs the actions that are due, without the lock.
void Event::Finish(std::unique_lock<std::mutex> lock) {
  Actions due;
  for (auto at = actions_.begin(); at != actions_.end();) {
    auto next = std::next(at);
    if (Over(at->first)) due.splice(due.end(), actions_, at);
    at = next;
  }
  changed_.notify_all();
  lock.unlock();
  for (auto& [value, action] : due) action();
}

void Event::Signal(uint64_t value, const FailurePtr& failure, const gpu::Fault& fault) {
  std::unique_lock lock(mutex_);
  if (failure && !failure_) {
    failure_ = failure;
    failed_from_ = value_ + 1;
  }
  if (fault.what != gpu::Fault::kNone && fault_.what == gpu::Fault::kNone) {
    fault_ = fault;
    faulted_from_ = value_ + 1;
  }
  value_ = std::max(value_, value);
  Finish(std::move(lock));
}

void Event::MarkLost(const FailurePtr& failure) {
  std::unique_lock lock(mutex_);
  if (!failure_) {
    failure_ = failure;
    failed_from_ = value_ + 1;
  }
  lost_ = true;
  Finish(std::move(lock));
}

void Event::Then(uint64_t value, Actions actions) noexcept {
  for (auto& [at, action] : actions) at = value;
  {
    std::lock_guard lock(mutex_);
    if (!Over(value)) actions_.splice(actions_.end(), actions);
  }
  for (auto& [at, action] : actions) action();
}

Result Event::HostWait(uint64_t value, uint64_t timeout_ns) {
  if (Result r = CheckWait(value); !r.ok()) return r;
  std::unique_lock lock(mutex_);
  auto over = [&] { return Over(value); };
  if (timeout_ns == UINT64_MAX) {
    changed_.wait(lock, over);
  } else {
    // A timeout longer than a year would overflow the clock.
    std::chrono::nanoseconds timeout(std::min<uint64_t>(timeout_ns, UINT64_C(31'536'000'000'000'000)));
    if (!changed_.wait_for(lock, timeout, over)) {
      return {MGE_DEADLINE_EXCEEDED, "timed out"};  // a short text, for which std::string allocates nothing
    }
  }
  if (failure_ && value >= failed_from_) return {failure_->code, failure_->text};
  if (fault_.what != gpu::Fault::kNone && value >= faulted_from_) return gpu::ErrorOf(fault_);
  return {};
}

void Event::Wait(uint64_t value) {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return Over(value); });
}

}  // namespace mge::software
