// SPDX-License-Identifier: Apache-2.0
#include "core/plugin/unfinished.h"

#include <algorithm>

namespace mge {

UnfinishedList& UnfinishedList::Lost() {
  alignas(UnfinishedList) static std::byte place[sizeof(UnfinishedList)];
  static auto& lost = *new (place) UnfinishedList;  // never destroyed
  return lost;
}

UnfinishedList::~UnfinishedList() {
  while (first_) {
    std::unique_ptr<Unfinished> work = std::move(first_);
    first_ = std::move(work->next_);
    Lost().Add(std::move(work));
  }
}

void UnfinishedList::Add(std::unique_ptr<Unfinished> work) {
  std::lock_guard lock(mutex_);
  work->next_ = std::move(first_);
  first_ = std::move(work);
  ++count_;
}

bool UnfinishedList::Reclaim(std::chrono::nanoseconds patience) {
  if (count_.load(std::memory_order_relaxed) == 0) return true;
  using Clock = std::chrono::steady_clock;
  const Clock::time_point end = Clock::now() + patience;
  std::lock_guard lock(mutex_);
  for (std::unique_ptr<Unfinished>* at = &first_; *at;) {
    if ((*at)->Over(std::max<std::chrono::nanoseconds>(end - Clock::now(), {}))) {
      *at = std::exchange((*at)->next_, nullptr);
      --count_;
    } else {
      at = &(*at)->next_;
    }
  }
  return !first_;
}

}  // namespace mge
