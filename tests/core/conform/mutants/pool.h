// SPDX-License-Identifier: Apache-2.0
// A pool, a reserve policy and a strategy of the backend's own.
#pragma once

#include <algorithm>

#include "devices.h"

namespace mutant {

// Blocks of whole pages, kept by size.
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
    Block* block = Find(size);
    if (block) ++stats_.hits;
    if (!block && (request.flags & MGE_POOL_NO_GROWTH) && !Is("ignores_no_growth"))
      return {MGE_RESOURCE_EXHAUSTED, "the pool may not grow"};
    if (!block) {
      Block fresh = {{}, size, true, nullptr, 0, 0};
      Result r = Slab(size, &fresh.slab, request.error);
      if (r.code() == MGE_RESOURCE_EXHAUSTED) {
        TrimFree();
        r = Slab(size, &fresh.slab, request.error);
      }
      if (!r.ok()) return {r.code(), "the host gives no slab"};
      stats_.committed += size;
      block = &blocks_.emplace_back(fresh);
    }
    auto address = reinterpret_cast<uintptr_t>(block->slab.address);
    address = (address + request.alignment - 1) / request.alignment * request.alignment + (Is("blocks_misaligned") ? 8 : 0);
    if (Is("blocks_overlap") && calls_ % 7 == 0 && last_) address = last_;
    last_ = address;
    block->used = true;
    block->bytes = bytes;
    stats_.in_use += bytes;
    stats_.peak_in_use = std::max(stats_.peak_in_use, stats_.in_use);
    *out = {sizeof(*out),
            0,
            reinterpret_cast<void*>(address),
            reinterpret_cast<void*>(address),
            bytes,
            reinterpret_cast<uintptr_t>(block)};
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
  void Trim(int32_t) {
    std::lock_guard lock(mutex_);
    TrimFree();
  }
  mge_pool_stats Stats() const {
    std::lock_guard lock(mutex_);
    mge_pool_stats stats = stats_;
    stats.presence = 0x3f;
    return stats;
  }

 private:
  static constexpr uint64_t kPage = 4096;
  struct Block {
    mge_slab slab;
    uint64_t size;
    bool used;
    mge_fence* fence;  // of the last use
    uint64_t value;
    uint64_t bytes;
    bool Ready() const { return !used && (!fence || mge::internal::As<Fence>(fence).HostWait(value, 0).ok()); }
  };
  Block* Find(uint64_t size) {
    for (Block& b : blocks_) {
      if (b.size == size && b.Ready()) return &b;
    }
    return nullptr;
  }
  Result Slab(uint64_t size, mge_slab* out, mge_error* error) {
    if (Is("outside_of_budget")) {
      *out = mge::MakeSlab(MGE_MEMORY_DEVICE, size, std::aligned_alloc(kPage, size), nullptr);
      return {};
    }
    ++stats_.slab_acquires;
    return slabs_.Acquire(size, out, error);
  }
  void Free(const Block& b) {
    stats_.committed -= b.size;
    ++stats_.slab_releases;
    Is("outside_of_budget") ? std::free(b.slab.address) : slabs_.Release(b.slab);
  }
  void TrimFree() {
    for (auto b = blocks_.begin(); b != blocks_.end();) {
      if (!b->Ready())
        ++b;
      else
        Free(*b), b = blocks_.erase(b);
    }
  }
  mge::SlabSource slabs_;
  mutable std::mutex mutex_;
  std::list<Block> blocks_;
  mge_pool_stats stats_ = {};
  uint64_t calls_ = 0;
  uintptr_t last_ = 0;
};

struct Reserve {
  static Result Decide(Device&, const mge_plan_summary& plan, mge_reserve_decision* out) {
    static std::atomic<uint64_t> asked = 0;
    out->initial = std::min(plan.arena_bytes + plan.workspace_bytes, plan.memory_free);
    out->retain = out->initial + (Is("reserve_not_pure") ? ++asked : 0);
    out->keep_free = plan.memory_total / 20;
    return {};
  }
};

struct Strategy {
  static Result Order(Device&, const mge::Choice& choice, std::span<uint32_t> order) {
    bool timed = choice.mode() == MGE_SELECT_PROFILE || (choice.mode() == MGE_SELECT_REPRODUCIBLE && Is("order_by_clock"));
    std::sort(order.begin(), order.end(), [&](uint32_t a, uint32_t b) {
      if (timed && choice.measured_us(a) != choice.measured_us(b)) return choice.measured_us(a) < choice.measured_us(b);
      if (choice.candidate(a).rank != choice.candidate(b).rank) return choice.candidate(a).rank < choice.candidate(b).rank;
      return choice.id(a) < choice.id(b);
    });
    return {};
  }
};

}  // namespace mutant
