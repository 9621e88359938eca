// SPDX-License-Identifier: Apache-2.0
// Pools: caches of device memory, and the reserve policies that limit them. One interface for the host's ready-made pools
// and a backend's own pool.
//
// Why: a driver call for memory costs microseconds to milliseconds and may wait for the device. A pool keeps released memory
// and hands it out again. It may do so before the last use is over, if the new use comes later on the same fence.
//
// Algorithm: Acquire() asks the pool (Take()). If memory runs out, the other keepers of the same budget give back idle
// memory, and the pool is asked again (budget.h). The pools themselves are in bucket_pool.h (naive, round, unpooled),
// growing_pool.h (growing) and backend_pool.cc. A reserve policy decides how much memory to take early, to keep, and to
// leave to others. Sources: naive and round follow MXNet's pooled storage managers (naive with the rounding of MXNet 1.4.1);
// the amounts of the policy "all" are those of MegEngine's MGB_CUDA_RESERVE_MEMORY.
//
//   MGE_ASSIGN_OR_RETURN(std::unique_ptr<Pool> pool, MakePool("growing", {}, provider));
//   MGE_ASSIGN_OR_RETURN(mge_reservation r, pool->Acquire(bytes));
//   ... pool->Release(r, &last_use);   // the fence point after which the memory is unused
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

// A pool of memory of one class of one device. Thread-safe. Must be destroyed only when all reservations are released.
class Pool {
 public:
  virtual ~Pool() = default;

  // Reserves at least `bytes`, aligned to `alignment` (a power of two up to 1 GiB). For 0 bytes the address is NULL;
  // Release() accepts it. `after` (optional) is the fence point after which the memory is used first. A block whose last use
  // is earlier on the same fence can then be reused without a wait. Flags: MGE_POOL_NO_GROWTH forbids to acquire memory from
  // the provider (fails with kGrowthRequired); MGE_POOL_MAY_WAIT allows a reservation with `ready` set, which the caller
  // must wait for. Fails with kOutOfMemory or kOverBudget.
  absl::StatusOr<mge_reservation> Acquire(uint64_t bytes, uint64_t alignment = kDefaultAlignment,
                                          const mge_fence_point* after = nullptr, uint32_t flags = 0) {
    absl::StatusOr<mge_reservation> taken = Take(bytes, alignment, after, flags);
    if (!taken.ok()) [[unlikely]]
      TakeAgain(bytes, alignment, after, flags, taken);
    return taken;
  }
  // Announces that the next requests take so many bytes together, so that a pool that grows in steps can grow once, by that
  // size. 0 withdraws it.
  virtual void Expect(uint64_t) {}
  // Returns a reservation to the pool. `last_use` is the fence point of its last use; nullptr: the use is over.
  virtual void Release(const mge_reservation& reservation, const mge_fence_point* last_use = nullptr) = 0;
  // Returns cached memory to the provider: all of it, or with MGE_TRIM_EXCESS down to the policy's `retain` bytes.
  virtual void Trim(int32_t how) = 0;
  virtual mge_pool_stats Stats() const = 0;
  // Returns the bytes that an empty pool would acquire from the provider for these requests, one after the other. If the
  // pool does not know, returns their sum.
  virtual uint64_t Footprint(std::span<const PoolRequest> requests) const;
  uint64_t Footprint(uint64_t bytes) const {
    const PoolRequest one = {bytes};
    return Footprint(std::span(&one, 1));
  }

  // Sets the limits `keep_free`, `retain` and `step` of the reserve policy. `retain` 0 means 0 bytes here.
  virtual void SetPolicy(const mge_reserve_decision& decision) = 0;
  virtual std::string_view name() const = 0;  // "naive"; "own" for a backend's pool

  // Sets the budget whose other keepers give back idle memory before a request of this pool fails. It must be the provider's
  // budget.
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

// Options of the ready-made pools.
struct PoolOptions {
  uint64_t page_bytes = 4096;            // naive: the smallest slab; round: the smallest bucket, a power of two; at least 32
  uint64_t large_round_bytes = 2 << 20;  // naive: larger sizes are rounded up to a multiple of this
  int linear_cutoff = 24;                // round: sizes above 2^cutoff are rounded up to a multiple of 2^cutoff; 20..34
};

// Creates the pool "naive", "round", "unpooled" or "growing". `provider` must outlive it. Fails with kBadSetting if the name
// is unknown or an option is out of range.
absl::StatusOr<std::unique_ptr<Pool>> MakePool(std::string_view name, const PoolOptions& options, SlabProvider* provider);
std::span<const std::string_view> PoolNames();

// Creates a backend's own pool, which acquires its memory from `slabs`. `api` and `slabs` must outlive the pool.
absl::StatusOr<std::unique_ptr<Pool>> MakeBackendPool(const mge_pool_api* api, mge_device* device, int32_t memory_class,
                                                      DeviceSlabs* slabs, std::string_view device_name);

// Returns statistics that are all zero, with every member marked as present.
mge_pool_stats NoStats();

// Return the slab size for a request: of the pool "naive" and of the pool "round". Tests compare them with published
// numbers.
uint64_t NaiveRound(uint64_t bytes, const PoolOptions& options);
uint64_t LogRound(uint64_t bytes, const PoolOptions& options);

// ---------------------------------------------------------------- reserve policies

// Returns `percent` hundredths of `bytes`, rounded down. Does not overflow for percentages up to 100.
inline uint64_t PercentOf(uint64_t bytes, uint64_t percent) { return bytes / 100 * percent + bytes % 100 * percent / 100; }

// A reserve policy of the host, parsed from text:
//   percent:5     leave 5 % of the device's memory free
//   bytes:64MiB   reserve 64 MiB before the first run and retain it
//   all           reserve all free memory except 225 MiB (if less than 2 GiB is free) or max(300 MiB, 5 %)
//   none          no reserve; also the meaning of an empty text
class ReservePolicy {
 public:
  // Parses a policy. Fails with kBadSetting; the error names the allowed forms.
  static absl::StatusOr<ReservePolicy> Parse(std::string_view text);
  mge_reserve_decision Decide(const mge_plan_summary& plan) const;
  std::string ToString() const;

 private:
  enum class Kind { kNone, kPercent, kBytes, kAll };
  Kind kind_ = Kind::kNone;
  uint64_t amount_ = 0;
};

}  // namespace mge
