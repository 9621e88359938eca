// SPDX-License-Identifier: Apache-2.0
// The pools that hand out whole slabs and keep them by size: naive, round, unpooled.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <string_view>
#include <vector>

#include "core/plugin/memory/pool.h"

namespace mge {

// One slab per reservation. A released slab waits in a list of its size, and the last one released
// is given first.
class BucketPool : public Pool {
 public:
  // `round`: the size of the slab for a request. Without `caching` a slab goes back as soon as its
  // last use is over.
  BucketPool(std::string_view name, uint64_t (*round)(uint64_t, const PoolOptions&), bool caching,
             const PoolOptions& options, SlabProvider* provider)
      : name_(name), round_(round), caching_(caching), options_(options), provider_(provider) {}
  ~BucketPool() override;

  void Release(const mge_reservation& reservation, const mge_fence_point* last_use) override;
  void Trim(int32_t how) override;
  mge_pool_stats Stats() const override;
  using Pool::Footprint;
  uint64_t Footprint(std::span<const PoolRequest> requests) const override;
  void SetPolicy(const mge_reserve_decision& decision) override;
  std::string_view name() const override { return name_; }

 protected:
  absl::StatusOr<mge_reservation> Take(uint64_t bytes, uint64_t alignment, const mge_fence_point* after,
                                       uint32_t flags) override;

 private:
  struct Block {
    mge_slab slab;
    mge_fence_point last_use;
  };
  // Size of the slab for a request: rounded, but not beyond what the provider gives at once.
  uint64_t SlabBytes(uint64_t bytes, uint64_t alignment) const;
  // Gives cached blocks back until at most `retain` bytes are committed, the largest first. Blocks
  // whose last use is not over stay, unless `wait`.
  void GiveBack(uint64_t retain, bool wait);
  // Slabs of one size. There is room for every one of them among the cached, so that releasing takes no memory.
  struct Bucket {
    std::vector<std::unique_ptr<Block>> cached;
    size_t slabs = 0;  // cached or handed out
  };
  // The one released last that is free by then; with `may_wait` the one released first, whose last use ends soonest.
  std::unique_ptr<Block> TakeCached(uint64_t size, const mge_fence_point* after, bool may_wait);
  absl::StatusOr<std::unique_ptr<Block>> NewBlock(uint64_t size);

  const std::string_view name_;
  uint64_t (*const round_)(uint64_t, const PoolOptions&);
  const bool caching_;
  const PoolOptions options_;
  SlabProvider* const provider_;
  mutable std::mutex mutex_;
  std::map<uint64_t, Bucket> buckets_;  // by size of the slab
  mge_reserve_decision policy_ = {};
  mge_pool_stats stats_ = NoStats();
};

}  // namespace mge
