// SPDX-License-Identifier: Apache-2.0
// What makes a pool of one's own fit for a backend with queues. That of parts.cc has none; the tests use it.
#pragma once

#include <cstdint>
#include <mutex>
#include <vector>

#include "mge/plugin.hpp"

// [after_use]
// A pool that knows no fences, for a backend with queues: it gets a block back when the last use of that is over.
template <typename Inner, typename Fence>
class AfterUse : public Inner {
 public:
  using Inner::Inner;
  ~AfterUse() { Collect(UINT64_MAX); }

  mge::Result Acquire(const mge::PoolRequest& request, mge_reservation* out) {
    std::lock_guard lock(mutex_);
    used_.reserve(held_ + 1);  // for its release, which must not fail
    Collect(0);
    mge::Result taken = Inner::Acquire(request, out);
    if (taken.out_of_memory() && !used_.empty()) {
      Collect(UINT64_MAX);
      taken = Inner::Acquire(request, out);
    }
    held_ += taken.ok();
    return taken;
  }
  void Release(const mge_reservation& reservation, const mge_fence_point* last_use) {
    std::lock_guard lock(mutex_);
    if (mge::FenceOf<Fence>(last_use)) return used_.push_back({reservation, *last_use});
    --held_;
    Inner::Release(reservation, nullptr);
  }
  void Trim(int32_t how) {
    std::lock_guard lock(mutex_);
    Collect(0);
    Inner::Trim(how);
  }

 private:
  struct Block {
    mge_reservation reservation;
    mge_fence_point last_use;  // its fence lives as long as the pool
  };
  // Releases what is over, or will be within this time; a fence that failed is an end, too.
  void Collect(uint64_t timeout_ns) {
    for (size_t i = used_.size(); i-- > 0;) {
      const Block block = used_[i];
      mge::Result reached = mge::FenceOf<Fence>(&block.last_use)->HostWait(block.last_use.value, timeout_ns);
      if (reached.code() == MGE_DEADLINE_EXCEEDED) continue;
      used_[i] = used_.back();
      used_.pop_back();
      --held_;
      Inner::Release(block.reservation, nullptr);
    }
  }

  std::mutex mutex_;
  std::vector<Block> used_;  // released, and perhaps still in use
  size_t held_ = 0;          // those, and what is handed out
};
// [after_use]
