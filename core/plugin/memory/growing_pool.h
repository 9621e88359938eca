// SPDX-License-Identifier: Apache-2.0
// The pool "growing": few large slabs, or one growing range of addresses, cut by best fit, joined with free neighbours.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "core/plugin/memory/growing_range.h"
#include "core/plugin/memory/pool.h"
#include "core/plugin/memory/pool_util.h"
#include "core/plugin/memory/spare_nodes.h"

namespace mge {

// A request is served by the smallest free block that holds it; what is left of the block stays free. Where nothing fits, a
// slab is taken: of the request's size, or larger while the pool is young (1 MiB, doubling up to 64 MiB). Where the device
// has virtual memory, that much more of one range is committed instead, next to what is committed already; where it has none
// and a budget binds, no more than the request or the policy's step, as what is left of a slab cannot go back. The blocks
// released last are kept whole for a while: their sizes are likely to be asked for again.
class GrowingPool : public Pool {
 public:
  explicit GrowingPool(SlabProvider* provider)
      : provider_(provider), range_(GrowingRange::Reserve(provider)) {}
  ~GrowingPool() override;

  void Release(const mge_reservation& reservation, const mge_fence_point* last_use) override;
  void Trim(int32_t how) override;
  mge_pool_stats Stats() const override;
  using Pool::Footprint;
  uint64_t Footprint(std::span<const PoolRequest> requests) const override;
  void SetPolicy(const mge_reserve_decision& decision) override;
  std::string_view name() const override { return "growing"; }

 protected:
  absl::StatusOr<mge_reservation> Take(uint64_t bytes, uint64_t alignment, const mge_fence_point* after,
                                       uint32_t flags) override;

 private:
  struct Block {
    uint64_t bytes;
    const mge_slab* slab;
  };
  struct Recent {
    uintptr_t address;
    Block block;
  };
  static constexpr int kRecent = 8;
  // Released, but the last use is not known to be over.
  struct Pending {
    uintptr_t address;
    Block block;
    mge_fence_point last_use;
  };

  // Memory to note that everything which is in use becomes free, and a few blocks more. False where there is none.
  bool Stock() noexcept;
  void AddFree(uintptr_t address, Block block) noexcept;  // joins neighbours of one slab; takes nodes that were stocked
  void RemoveFree(std::map<uintptr_t, Block>::iterator at) noexcept;
  void Sweep(bool wait);  // pending blocks that are over become free
  void SettleRecent();    // the blocks released last become free
  bool TakeRecent(uint64_t bytes, uint64_t alignment, Piece& out);
  bool TakeFree(uint64_t bytes, uint64_t alignment, Piece& out);
  bool TakePending(uint64_t bytes, uint64_t alignment, const mge_fence_point* after, bool may_wait, Piece& out);
  absl::Status Grow(uint64_t size, uint64_t alignment);
  absl::Status GrowBy(uint64_t size, uint64_t alignment, uint64_t want);
  void AddCommitted(uintptr_t address, Block block);
  void GiveBack(uint64_t retain);
  void GiveBackOfRange(uint64_t retain);
  absl::StatusOr<mge_reservation> Hand(const Piece& piece);

  SlabProvider* const provider_;
  const std::unique_ptr<GrowingRange> range_;  // nullptr without virtual memory
  mutable std::mutex mutex_;
  std::vector<std::unique_ptr<mge_slab>> slabs_;
  std::map<uintptr_t, Block> free_;                        // by address
  std::set<std::pair<uint64_t, uintptr_t>> free_by_size_;  // the same: size, address
  SpareNodes<std::map<uintptr_t, Block>> spare_;
  SpareNodes<std::set<std::pair<uint64_t, uintptr_t>>> spare_by_size_;
  size_t handed_out_ = 0;
  std::vector<Pending> pending_;
  Recent recent_[kRecent];
  int recent_count_ = 0;
  uint64_t next_growth_ = uint64_t{1} << 20;
  mge_reserve_decision policy_ = {};
  mge_pool_stats stats_ = NoStats();
};

}  // namespace mge
