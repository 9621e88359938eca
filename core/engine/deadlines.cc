// SPDX-License-Identifier: Apache-2.0
#include "core/engine/deadlines.h"

#include <unistd.h>

#include <algorithm>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <system_error>

#include "core/base/thread.h"

namespace mge {

// The watches of one process, and the thread that waits for the earliest deadline.
struct Deadlines::Keeper {
  Keeper() : thread([this] { Work(); }) {}
  ~Keeper() {
    {
      std::lock_guard lock(mutex);
      end = true;
    }
    changed.notify_one();
    thread.join();
  }
  std::mutex mutex;
  std::condition_variable changed;
  Watch* first = nullptr;  // a list without order; it is short: one per running run
  Clock::time_point wake = Clock::time_point::max();
  bool end = false;
  const pid_t process = getpid();
  Thread thread;  // last: it uses the other members

  void Work() {
    std::unique_lock lock(mutex);
    while (!end) {
      wake = Clock::time_point::max();
      Clock::time_point now = Clock::now();
      for (Watch* w = first; w; w = w->next_) {
        if (w->at_ > now) {
          wake = std::min(wake, w->at_);
        } else {
          int32_t expected = kGoOn;
          w->stop_.compare_exchange_strong(expected, kTimeIsUp, std::memory_order_relaxed);
        }
      }
      if (wake == Clock::time_point::max()) {
        changed.wait(lock);
      } else {
        changed.wait_until(lock, wake);
      }
    }
  }
};

Deadlines::~Deadlines() {
  Keeper* keeper = keeper_.load();
  // After a fork the keeper belongs to the parent: this process has no such thread, and the mutex may be locked.
  if (keeper && keeper->process == getpid()) delete keeper;
}

Deadlines::Keeper* Deadlines::KeeperOfThisProcess() {
  Keeper* keeper = keeper_.load(std::memory_order_acquire);
  if (keeper && keeper->process == getpid()) return keeper;
  try {
    auto fresh = std::make_unique<Keeper>();
    return keeper_.compare_exchange_strong(keeper, fresh.get(), std::memory_order_acq_rel) ? fresh.release() : keeper;
  } catch (const std::system_error&) {
    return nullptr;  // no more threads are allowed
  }
}

Deadlines::Watch::Watch(Deadlines& owner, Clock::time_point at, std::atomic<int32_t>& stop)
    : keeper_(owner.KeeperOfThisProcess()), at_(at), stop_(stop) {
  if (!keeper_) return;
  std::lock_guard lock(keeper_->mutex);
  next_ = keeper_->first;
  if (next_) next_->previous_ = this;
  keeper_->first = this;
  if (at_ < keeper_->wake) keeper_->changed.notify_one();
}

Deadlines::Watch::~Watch() {
  if (!keeper_) return;
  {
    std::lock_guard lock(keeper_->mutex);
    (previous_ ? previous_->next_ : keeper_->first) = next_;
    if (next_) next_->previous_ = previous_;
  }
  int32_t expected = kTimeIsUp;
  stop_.compare_exchange_strong(expected, kGoOn, std::memory_order_relaxed);
}

}  // namespace mge
