// SPDX-License-Identifier: Apache-2.0
// Adapts a pool without fences, such as the one of parts.cc, to a backend with queues. The tests use it.
#pragma once

#include <cstdint>
#include <mutex>
#include <vector>

#include "mge/plugin.hpp"

// [after_use]
// A pool adapter for a backend with queues: it gives a block back to the inner pool only when its last use is over.
template <typename Inner, typename Fence>
class AfterUse : public Inner {
 public:
  using Inner::Inner;
  ~AfterUse() { Collect(UINT64_MAX); }

  mge::Result Acquire(const mge::PoolRequest& request, mge_reservation* out) {
    std::lock_guard lock(mutex_);
    used_.reserve(held_ + 1);  // lets Release work without allocating
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
    mge_fence_point last_use;  // its fence is valid as long as the pool
  };
  // Releases blocks whose last use is over, or ends within timeout_ns. A failed fence counts as over.
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
  std::vector<Block> used_;  // released, possibly still in use
  size_t held_ = 0;          // number of used_ plus blocks in use by callers
};
// [after_use]
