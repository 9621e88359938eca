// SPDX-License-Identifier: Apache-2.0
// The pools that hand out whole slabs and cache them by size: naive, round, unpooled.
//
// Algorithm: round the request to a slab size. If a cached slab of exactly that size is free, return it. Otherwise acquire a
// slab from the provider. If the provider has no memory, release the cached slabs and try once more. The three pools differ
// in the rounding (NaiveRound, LogRound, none), and "unpooled" caches nothing. Source of naive and round: the pooled storage
// managers of MXNet.
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

// A pool with one slab per reservation. Released slabs are kept in one list per size; the slab released last is reused
// first.
class BucketPool : public Pool {
 public:
  // `round` computes the slab size for a request. Without `caching`, a slab is returned to the provider when its last use is
  // over. `provider` is not owned and must outlive the pool.
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
  // Returns the slab size for a request: rounded, but not above the provider's largest slab unless the request itself is.
  uint64_t SlabBytes(uint64_t bytes, uint64_t alignment) const;
  // Releases cached blocks to the provider, the largest first, until at most `retain` bytes are committed. If `wait` is
  // false, blocks whose last use is not over are kept; else their last use is waited for.
  void GiveBack(uint64_t retain, bool wait);
  // The slabs of one size. `cached` has capacity for all of them, so that Release() need not allocate memory.
  struct Bucket {
    std::vector<std::unique_ptr<Block>> cached;
    size_t slabs = 0;  // number of cached and handed-out slabs
  };
  // Takes the most recently released block that is free at `after`. If there is none and `may_wait` is true, takes the block
  // released first, because its last use ends soonest. Otherwise returns nullptr.
  std::unique_ptr<Block> TakeCached(uint64_t size, const mge_fence_point* after, bool may_wait);
  absl::StatusOr<std::unique_ptr<Block>> NewBlock(uint64_t size);

  const std::string_view name_;
  uint64_t (*const round_)(uint64_t, const PoolOptions&);
  const bool caching_;
  const PoolOptions options_;
  SlabProvider* const provider_;
  mutable std::mutex mutex_;
  std::map<uint64_t, Bucket> buckets_;  // by slab size in bytes
  mge_reserve_decision policy_ = {};
  mge_pool_stats stats_ = NoStats();
};

}  // namespace mge
