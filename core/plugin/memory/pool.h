// SPDX-License-Identifier: Apache-2.0
// Pools: how memory of a device is kept between uses. One interface over the host's ready-made pools and a backend's own.
//
//   MGE_ASSIGN_OR_RETURN(std::unique_ptr<Pool> pool, MakePool("growing", {}, provider));
//   MGE_ASSIGN_OR_RETURN(mge_reservation r, pool->Acquire(bytes));
//   ... pool->Release(r, &last_use);   // the fence after which nobody reads it any more
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "core/base/status.h"
#include "core/plugin/memory/slab_provider.h"
#include "mge/plugin.h"

namespace mge {

inline constexpr uint64_t kDefaultAlignment = 64;

struct PoolRequest {
  uint64_t bytes;
  uint64_t alignment = kDefaultAlignment;
};

// Safe on any thread. Destroy it when nothing of it is in use.
class Pool {
 public:
  virtual ~Pool() = default;

  // At least `bytes`, aligned to a power of two. 0 bytes give a NULL address, which Release takes back.
  // `after` (nullptr: at once): the memory is used when this is reached, so that a block whose last use comes earlier on the
  // same fence can be given at once. `flags`: MGE_POOL_NO_GROWTH takes nothing from the provider (kGrowthRequired);
  // MGE_POOL_MAY_WAIT allows a reservation with `ready` set. kOutOfMemory, kOverBudget.
  absl::StatusOr<mge_reservation> Acquire(uint64_t bytes, uint64_t alignment = kDefaultAlignment,
                                          const mge_fence_point* after = nullptr, uint32_t flags = 0) {
    absl::StatusOr<mge_reservation> taken = Take(bytes, alignment, after, flags);
    if (!taken.ok()) [[unlikely]] TakeAgain(bytes, alignment, after, flags, taken);
    return taken;
  }
  // `last_use` (nullptr: over already).
  virtual void Release(const mge_reservation& reservation, const mge_fence_point* last_use = nullptr) = 0;
  // Gives cached memory back to the provider: all of it, or with MGE_TRIM_EXCESS down to the policy's `retain`.
  virtual void Trim(int32_t how) = 0;
  virtual mge_pool_stats Stats() const = 0;
  // Bytes that the pool takes from the provider for such requests, one after the other, when it holds nothing free and gets no
  // more than it must; their sum where that is not known.
  virtual uint64_t Footprint(std::span<const PoolRequest> requests) const;
  uint64_t Footprint(uint64_t bytes) const {
    const PoolRequest one = {bytes};
    return Footprint(std::span(&one, 1));
  }

  // What the reserve policy decided: `keep_free`, `retain` (resolved) and `step` hold from now on.
  virtual void SetPolicy(const mge_reserve_decision& decision) = 0;
  virtual std::string_view name() const = 0;  // "naive"; "own" for a backend's

  // Whoever else uses this budget gives back what it keeps before a request fails. The budget is that of the provider.
  void ShareBudget(std::shared_ptr<Budget> budget) { budget_ = std::move(budget); }

 protected:
  virtual absl::StatusOr<mge_reservation> Take(uint64_t bytes, uint64_t alignment, const mge_fence_point* after,
                                               uint32_t flags) = 0;

  uint64_t over_budget() const { return over_budget_.load(std::memory_order_relaxed); }  // for Stats()

 private:
  void TakeAgain(uint64_t bytes, uint64_t alignment, const mge_fence_point* after, uint32_t flags,
                 absl::StatusOr<mge_reservation>& taken);

  std::shared_ptr<Budget> budget_;
  std::atomic<uint64_t> over_budget_{0};
};

// Numbers of the ready-made pools.
struct PoolOptions {
  uint64_t page_bytes = 4096;            // naive: the least size; round: the smallest bucket, a power of two
  uint64_t large_round_bytes = 2 << 20;  // naive: sizes above are rounded up to multiples
  int linear_cutoff = 24;                // round: sizes above 2^cutoff are rounded to multiples of it; 20..34
};

// "naive", "round", "unpooled", "growing". kBadSetting for another name (with the nearest) or numbers out of range.
// The provider outlives the pool.
absl::StatusOr<std::unique_ptr<Pool>> MakePool(std::string_view name, const PoolOptions& options, SlabProvider* provider);
std::span<const std::string_view> PoolNames();

// A pool of the backend's own over the host's slabs.
absl::StatusOr<std::unique_ptr<Pool>> MakeBackendPool(const mge_pool_api* api, mge_device* device, int32_t memory_class,
                                                      DeviceSlabs* slabs, std::string_view device_name);

// Zero, every member present.
mge_pool_stats NoStats();

// The sizes that the pools take from their provider; tests hold them to published numbers.
uint64_t NaiveRound(uint64_t bytes, const PoolOptions& options);
uint64_t LogRound(uint64_t bytes, const PoolOptions& options);

// ---------------------------------------------------------------- reserve policies

// "percent:5": leave 5 % of the device alone. "bytes:64MiB": take as much before the first run. "all": take everything but
// 225 MiB (below 2 GiB free) or the larger of 300 MiB and a twentieth. "none".
class ReservePolicy {
 public:
  // kBadSetting names what is allowed.
  static absl::StatusOr<ReservePolicy> Parse(std::string_view text);
  mge_reserve_decision Decide(const mge_plan_summary& plan) const;
  std::string ToString() const;

 private:
  enum class Kind { kNone, kPercent, kBytes, kAll };
  Kind kind_ = Kind::kNone;
  uint64_t amount_ = 0;
};

}  // namespace mge
