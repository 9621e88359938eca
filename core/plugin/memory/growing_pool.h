// SPDX-License-Identifier: Apache-2.0
// The pool "growing": a best-fit allocator over few large slabs, or over one growing range of addresses.
//
// Why: a pool with one slab per request fragments the device's memory when sizes vary, as with dynamic shapes.
//
// Algorithm:
//   1. If one of the 8 blocks released last has exactly the requested size, reuse it. Sizes tend to repeat.
//   2. Otherwise use the smallest free block that is large enough. The rest of it stays free. Free neighbours are joined.
//   3. Otherwise use a released block that the same fence has freed by `after`, or one to wait for if the caller allows it.
//   4. Otherwise grow: by the request's size, or by the growth step (1 MiB, doubling up to 64 MiB) if that is larger. If the
//      caller has announced the size of its requests (Expect()), that size replaces the step.
// If the device has virtual memory, step 4 commits memory at the end of one reserved range, so that it joins the last free
// block. PyTorch's expandable segments use the same method. Otherwise it acquires a slab. If a budget binds, a slab is no
// larger than the request or the policy's `step`, because part of a slab cannot be given back.
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

// The pool "growing". Thread-safe. `provider` is not owned and must outlive the pool.
class GrowingPool : public Pool {
 public:
  explicit GrowingPool(SlabProvider* provider) : provider_(provider), range_(GrowingRange::Reserve(provider)) {}
  ~GrowingPool() override;

  void Expect(uint64_t bytes) override;
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
  // A released block whose last use is not known to be over.
  struct Pending {
    uintptr_t address;
    Block block;
    mge_fence_point last_use;
  };

  // Allocates the bookkeeping memory for the release of every block in use and for one request. After that, releasing cannot
  // fail for lack of memory. Returns false if there is not enough memory.
  bool Stock() noexcept;
  uint64_t SlabBytes(uint64_t bytes,
                     uint64_t alignment) const;           // a size in which the request fits, wherever the slab begins
  void AddFree(uintptr_t address, Block block) noexcept;  // joins free neighbours in the slab; uses nodes from Stock()
  void RemoveFree(std::map<uintptr_t, Block>::iterator at) noexcept;
  void Sweep(bool wait);  // makes pending blocks free whose last use is over; `wait` waits for all
  void SettleRecent();    // makes the blocks of recent_ free
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
  const std::unique_ptr<GrowingRange> range_;  // nullptr if the device has no virtual memory
  mutable std::mutex mutex_;
  std::vector<std::unique_ptr<mge_slab>> slabs_;
  std::map<uintptr_t, Block> free_;                        // by address
  std::set<std::pair<uint64_t, uintptr_t>> free_by_size_;  // the blocks of free_ as (size, address)
  SpareNodes<std::map<uintptr_t, Block>> spare_;
  SpareNodes<std::set<std::pair<uint64_t, uintptr_t>>> spare_by_size_;
  size_t handed_out_ = 0;
  std::vector<Pending> pending_;
  Recent recent_[kRecent];
  int recent_count_ = 0;
  uint64_t next_growth_ = uint64_t{1} << 20;
  uint64_t expected_ = 0;  // bytes of the announced requests that have not come
  mge_reserve_decision policy_ = {};
  mge_pool_stats stats_ = NoStats();
};

}  // namespace mge
