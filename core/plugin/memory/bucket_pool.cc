// SPDX-License-Identifier: Apache-2.0
#include "core/plugin/memory/bucket_pool.h"

#include <algorithm>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "core/plugin/memory/pool_util.h"
#include "fmt/format.h"

namespace mge {

BucketPool::~BucketPool() { GiveBack(0, true); }

uint64_t BucketPool::SlabBytes(uint64_t bytes, uint64_t alignment) const {
  const uint64_t padded = PaddedSize(bytes, alignment, provider_->Alignment());
  return std::max(padded, std::min(round_(padded, options_), provider_->Largest()));
}

std::unique_ptr<BucketPool::Block> BucketPool::TakeCached(uint64_t size, const mge_fence_point* after, bool may_wait) {
  auto bucket = buckets_.find(size);
  if (bucket == buckets_.end()) return nullptr;
  std::vector<std::unique_ptr<Block>>& blocks = bucket->second.cached;
  if (blocks.empty()) return nullptr;
  size_t i = blocks.size();
  while (i > 0 && !IsFree(blocks[i - 1]->last_use, after, *provider_)) --i;
  if (i == 0 && !may_wait) return nullptr;
  const bool waits = i == 0;
  if (!waits) --i;
  std::unique_ptr<Block> block = std::move(blocks[i]);
  blocks.erase(blocks.begin() + static_cast<std::ptrdiff_t>(i));
  if (!waits) block->last_use = {};
  return block;
}

absl::StatusOr<std::unique_ptr<BucketPool::Block>> BucketPool::NewBlock(uint64_t size) {
  auto block = std::make_unique<Block>();  // allocated first: if it fails, no slab leaks
  Bucket& bucket = buckets_[size];
  if (bucket.cached.capacity() <= bucket.slabs) bucket.cached.reserve(2 * bucket.slabs + 1);
  ++bucket.slabs;  // so that GiveBack() does not erase the bucket
  absl::Cleanup undo = [&] { --bucket.slabs; };
  absl::StatusOr<mge_slab> slab = provider_->Acquire(size);
  if (!slab.ok() && absl::IsResourceExhausted(slab.status()) && stats_.committed > stats_.in_use) {
    // Cached memory must never be the reason that a request fails.
    GiveBack(0, true);
    slab = provider_->Acquire(size);
  }
  if (!slab.ok()) return slab.status();
  std::move(undo).Cancel();
  block->slab = *slab;
  stats_.committed += size;
  ++stats_.slab_acquires;
  return block;
}

void BucketPool::GiveBack(uint64_t retain, bool wait) {
  for (auto bucket = buckets_.rbegin(); bucket != buckets_.rend(); ++bucket) {
    bucket->second.slabs -= std::erase_if(bucket->second.cached, [&](const std::unique_ptr<Block>& block) {
      if (stats_.committed <= retain || !provider_->Reached(block->last_use, wait)) return false;
      stats_.committed -= block->slab.bytes;
      ++stats_.slab_releases;
      provider_->Release(block->slab);
      return true;
    });
  }
  std::erase_if(buckets_, [](const auto& entry) { return entry.second.slabs == 0; });
}

absl::StatusOr<mge_reservation> BucketPool::Take(uint64_t bytes, uint64_t alignment, const mge_fence_point* after,
                                                 uint32_t flags) {
  CheckRequest(alignment, flags);
  if (bytes == 0) return NoMemory();
  if (bytes > kLargestRequest) return TooLarge(bytes);
  const uint64_t size = SlabBytes(bytes, alignment);
  std::lock_guard lock(mutex_);
  if (!caching_) GiveBack(0, false);
  std::unique_ptr<Block> block = caching_ ? TakeCached(size, after, flags & MGE_POOL_MAY_WAIT) : nullptr;
  if (block) {
    ++stats_.hits;
  } else {
    if (flags & MGE_POOL_NO_GROWTH) return GrowthForbidden(name_, bytes);
    if (MemoryInfo info = provider_->Info(); info.total_bytes) {
      // Only triggers the release of cached slabs. The provider decides whether the request succeeds.
      if (info.free_bytes <= policy_.keep_free || size > info.free_bytes - policy_.keep_free) GiveBack(0, false);
    }
    MGE_ASSIGN_OR_RETURN(block, NewBlock(size));
  }
  stats_.in_use += size;
  stats_.peak_in_use = std::max(stats_.peak_in_use, stats_.in_use);
  const Block& given = *block.release();
  const auto begin = reinterpret_cast<uintptr_t>(given.slab.address), address = AlignUp(begin, alignment);
  return Reservation({&given.slab, address, size - (address - begin), given.last_use.fence, given.last_use.value}, &given);
}

void BucketPool::Release(const mge_reservation& reservation, const mge_fence_point* last_use) {
  if (!reservation.token) return;
  std::unique_ptr<Block> block(reinterpret_cast<Block*>(static_cast<uintptr_t>(reservation.token)));
  block->last_use = LastUseOf(reservation, last_use);
  std::lock_guard lock(mutex_);
  stats_.in_use -= block->slab.bytes;
  if (!caching_ && last_use && provider_->ReleaseAfter(block->slab, *last_use)) {
    --buckets_.find(block->slab.bytes)->second.slabs;
    stats_.committed -= block->slab.bytes;
    ++stats_.slab_releases;
    return;
  }
  buckets_.find(block->slab.bytes)->second.cached.push_back(std::move(block));
  if (!caching_) GiveBack(0, false);
}

void BucketPool::Trim(int32_t how) {
  std::lock_guard lock(mutex_);
  GiveBack(how == MGE_TRIM_EXCESS ? policy_.retain : 0, false);
}

mge_pool_stats BucketPool::Stats() const {
  std::lock_guard lock(mutex_);
  mge_pool_stats stats = stats_;
  stats.over_budget = over_budget();
  if (!caching_) return stats;
  for (auto bucket = buckets_.rbegin(); bucket != buckets_.rend(); ++bucket) {
    if (bucket->second.cached.empty() || !IsFree(bucket->second.cached.back()->last_use, nullptr, *provider_)) continue;
    stats.largest_free = bucket->first;
    break;
  }
  return stats;
}

uint64_t BucketPool::Footprint(std::span<const PoolRequest> requests) const {
  uint64_t bytes = 0;
  for (const PoolRequest& r : requests) bytes += r.bytes ? SlabBytes(r.bytes, r.alignment) : 0;
  return bytes;
}

void BucketPool::SetPolicy(const mge_reserve_decision& decision) {
  std::lock_guard lock(mutex_);
  policy_ = decision;
}

}  // namespace mge
