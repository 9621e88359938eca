// SPDX-License-Identifier: Apache-2.0
// The backend's own pool, reserve policy and strategy.
#pragma once

#include <algorithm>

#include "devices.h"

namespace mutant {

// A pool of blocks of whole pages. It reuses a block for requests of the same size.
class Pool {
 public:
  Pool(Device&, int32_t, const mge::SlabSource& slabs) : slabs_(slabs) {}
  ~Pool() {
    for (Block& b : blocks_) Free(b);
  }
  Result Acquire(const mge::PoolRequest& request, mge_reservation* out) {
    std::lock_guard lock(mutex_);
    if (request.alignment > kPage) return {MGE_INVALID_ARGUMENT, "the alignment is more than a page"};
    if (request.bytes > uint64_t{1} << 40) return {MGE_RESOURCE_EXHAUSTED, "no pool has as much memory"};
    uint64_t bytes = (request.bytes + 63) / 64 * 64, size = (bytes + kPage - 1) / kPage * kPage + kPage;
    ++calls_;
    Block* block = Find(size, request.after, request.flags & MGE_POOL_MAY_WAIT);
    if (block) ++stats_.hits;
    if (!block && (request.flags & MGE_POOL_NO_GROWTH) && !Is("ignores_no_growth"))
      return {Is("growth_is_exhausted") ? MGE_RESOURCE_EXHAUSTED : MGE_GROWTH_REQUIRED, "the pool may not grow"};
    if (!block) {
      std::list<Block> fresh(1);  // allocated first, so that nothing can fail after the slab
      block = &fresh.front();
      block->size = size;
      Result r = Slab(size, &block->slab, request.error);
      if (r.out_of_memory()) {
        TrimFree(0);
        r = Slab(size, &block->slab, request.error);
      }
      if (r.code() == MGE_OVER_BUDGET && !Is("refusals_uncounted")) ++stats_.over_budget;
      if (!r.ok()) return {Is("budget_is_exhausted") ? MGE_RESOURCE_EXHAUSTED : r.code(), "the host gives no slab"};
      stats_.committed += size;
      blocks_.splice(blocks_.end(), fresh);
    }
    auto address = reinterpret_cast<uintptr_t>(block->slab.address);
    const uint64_t alignment = Is("aligns_to_64") ? 64 : request.alignment;
    address = (address + alignment - 1) / alignment * alignment + (Is("blocks_misaligned") ? 8 : 0);
    if (Is("blocks_overlap") && calls_ % 7 == 0 && last_) address = last_;
    last_ = address;
    const bool ready = block->Ready(request.after);
    block->used = true;
    block->bytes = bytes;
    stats_.in_use += bytes;
    if (!Is("peak_forgotten")) stats_.peak_in_use = std::max(stats_.peak_in_use, stats_.in_use);
    *out = {};
    out->struct_size = sizeof(*out);
    out->address = reinterpret_cast<void*>(address);
    out->host_address = Is("block_address_lies") ? kNowhere : out->address;
    out->bytes = bytes;
    out->token = reinterpret_cast<uintptr_t>(block);
    if (!ready && !Is("wait_not_said")) out->ready = block->fence, out->ready_value = block->value;
    return {};
  }
  void Release(const mge_reservation& reservation, const mge_fence_point* last_use) {
    std::lock_guard lock(mutex_);
    auto* block = reinterpret_cast<Block*>(reservation.token);
    if (!Is("stats_lie")) stats_.in_use -= block->bytes;
    if (Is("leaks_reservation")) return;
    block->used = false;
    block->fence = last_use && !Is("reuses_early") ? last_use->fence : nullptr;
    block->value = last_use ? last_use->value : 0;
  }
  void Trim(int32_t how) {
    std::lock_guard lock(mutex_);
    TrimFree(how == MGE_TRIM_EXCESS && !Is("retain_ignored") ? retain_ : 0);
  }
  void SetPolicy(const mge_reserve_decision& decision) {
    std::lock_guard lock(mutex_);
    retain_ = decision.retain;
  }
  mge_pool_stats Stats() const {
    std::lock_guard lock(mutex_);
    mge_pool_stats stats = stats_;
    stats.presence = Is("tells_no_numbers") ? 0 : MGE_POOL_STATS_ALL;
    for (const Block& b : blocks_) {
      if (b.Ready()) stats.largest_free = std::max(stats.largest_free, b.size - kPage);
    }
    if (Is("largest_free_lies")) stats.largest_free *= 2;
    if (Is("largest_free_unknown")) stats.largest_free = 0;
    return stats;
  }

 private:
  static constexpr uint64_t kPage = 4096;
  struct Block {
    mge_slab slab = {};
    uint64_t size = 0;
    bool used = false;
    mge_fence* fence = nullptr;  // fence of the last use
    uint64_t value = 0;
    uint64_t bytes = 0;
    bool Ready(const mge_fence_point* after = nullptr) const {
      if (after && fence && (after->fence == fence || Is("after_any_fence")) && after->value >= value) return !used;
      return !used && (!fence || mge::internal::As<Fence>(fence).HostWait(value, 0).ok());
    }
  };
  Block* Find(uint64_t size, const mge_fence_point* after, bool may_wait) {
    Block* busy = nullptr;
    for (Block& b : blocks_) {
      if (b.size != size || b.used) continue;
      if (b.Ready(after)) return &b;
      busy = &b;
    }
    return may_wait ? busy : nullptr;
  }
  Result Slab(uint64_t size, mge_slab* out, mge_error* error) {
    if (Is("outside_of_budget")) {
      *out = mge::MakeSlab(MGE_MEMORY_DEVICE, size, std::aligned_alloc(kPage, size), nullptr);
      return {};
    }
    Result r = slabs_.Acquire(size, out, error);
    if (r.ok()) ++stats_.slab_acquires;
    return r;
  }
  void Free(const Block& b) {
    stats_.committed -= b.size;
    ++stats_.slab_releases;
    Is("outside_of_budget") ? std::free(b.slab.address) : slabs_.Release(b.slab);
    if (Is("releases_twice")) slabs_.Release(b.slab);
  }
  void TrimFree(uint64_t retain) {
    bool freed = false;  // the previous block was freed
    for (auto b = blocks_.begin(); b != blocks_.end();) {
      const bool unused = b->Ready() || (freed && Is("trims_used_slab"));
      freed = unused && stats_.committed > retain;
      if (freed)
        Free(*b), b = blocks_.erase(b);
      else
        ++b;
    }
  }
  mge::SlabSource slabs_;
  mutable std::mutex mutex_;
  std::list<Block> blocks_;
  mge_pool_stats stats_ = {};
  uint64_t retain_ = 0;
  uint64_t calls_ = 0;
  uintptr_t last_ = 0;
};

struct Reserve {
  static Result Decide(Device&, const mge_plan_summary& plan, mge_reserve_decision* out) {
    static std::atomic<uint64_t> asked = 0;
    out->initial = std::min(plan.arena_bytes + plan.workspace_bytes, plan.memory_free);
    if (Is("cap_below_initial")) out->cap = out->initial / 2 + 1;
    out->retain = out->initial + (Is("reserve_not_pure") ? ++asked : 0);
    out->keep_free = plan.memory_total / 20;
    return {};
  }
};

struct Strategy {
  static Result Order(Device&, const mge::Choice& choice, std::span<uint32_t> order) {
    const bool timed = choice.mode() == MGE_SELECT_PROFILE;
    std::sort(order.begin(), order.end(), [&](uint32_t a, uint32_t b) {
      if (timed && choice.measured_us(a) != choice.measured_us(b)) return choice.measured_us(a) < choice.measured_us(b);
      if (choice.candidate(a).rank != choice.candidate(b).rank) return choice.candidate(a).rank < choice.candidate(b).rank;
      return choice.id(a) < choice.id(b);
    });
    if (Is("orders_one_twice") && order.size() > 2) order[2] = order[1];
    if (Is("orders_too_few") && order.size() > 2) order[order.size() - 1] = UINT32_MAX;
    if (Is("fails_to_profile") && timed) return {MGE_INTERNAL, "it cannot compare times"};
    if (Is("orders_by_calls")) {
      static std::atomic<size_t> calls = 0;
      std::rotate(order.begin(), order.begin() + static_cast<ptrdiff_t>(++calls % order.size()), order.end());
    }
    return {};
  }
};

}  // namespace mutant
