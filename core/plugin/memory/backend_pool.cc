// SPDX-License-Identifier: Apache-2.0
// A backend's own pool with the interface of the host's pools.
#include <atomic>
#include <iterator>
#include <utility>

#include "core/base/errors.h"
#include "core/plugin/abi_call.h"
#include "core/plugin/memory/pool.h"
#include "core/plugin/memory/pool_util.h"
#include "fmt/format.h"

namespace mge {
namespace {

class BackendPool : public Pool {
 public:
  BackendPool(const mge_pool_api* api, mge_pool* pool, DeviceSlabs* slabs, std::string device)
      : api_(api), pool_(pool), slabs_(slabs), device_(std::move(device)) {}
  ~BackendPool() override { api_->destroy(pool_); }

  void Release(const mge_reservation& reservation, const mge_fence_point* last_use) override {
    if (!reservation.address) return;
    const mge_fence_point until = LastUseOf(reservation, last_use);
    api_->release(pool_, &reservation, until.fence ? &until : nullptr);
  }
  void Trim(int32_t how) override { api_->trim(pool_, how); }
  mge_pool_stats Stats() const override {
    mge_pool_stats stats = {};
    stats.struct_size = sizeof(stats);
    api_->stats(pool_, &stats);
    uint64_t* members[] = {&stats.in_use,        &stats.peak_in_use, &stats.committed,    &stats.slab_acquires,
                           &stats.slab_releases, &stats.hits,        &stats.largest_free, &stats.over_budget};
    for (size_t i = 0; i < std::size(members); ++i) {
      if (!(stats.presence >> i & 1)) *members[i] = 0;
    }
    if (!(stats.presence & 1)) stats.in_use = stats.committed;  // unknown, so no memory is reported as idle
    stats.over_budget = over_budget();
    stats.presence |= uint32_t{1} << (std::size(members) - 1);
    return stats;
  }
  void SetPolicy(const mge_reserve_decision& decision) override {
    keep_free_.store(decision.keep_free, std::memory_order_relaxed);
    if (api_->set_policy) api_->set_policy(pool_, &decision);
  }
  std::string_view name() const override { return "own"; }

 protected:
  absl::StatusOr<mge_reservation> Take(uint64_t bytes, uint64_t alignment, const mge_fence_point* after,
                                       uint32_t flags) override {
    CheckRequest(alignment, flags);
    if (bytes == 0) return NoMemory();
    if (bytes > kLargestRequest) return TooLarge(bytes);
    if (!LeavesTooLittle(bytes)) return Ask(bytes, alignment, after, flags);
    // Tries the cached memory first. Only if it has no block, trims the pool and lets it grow.
    absl::StatusOr<mge_reservation> held = Ask(bytes, alignment, after, flags | MGE_POOL_NO_GROWTH);
    if ((flags & MGE_POOL_NO_GROWTH) || ErrorId(held.status()) != errors::kGrowthRequired.id) return held;
    api_->trim(pool_, MGE_TRIM_ALL);
    return Ask(bytes, alignment, after, flags);
  }

 private:
  bool LeavesTooLittle(uint64_t bytes) const {
    const uint64_t keep = keep_free_.load(std::memory_order_relaxed);
    if (keep == 0) return false;
    const MemoryInfo info = slabs_->Info();
    return info.total_bytes && (info.free_bytes <= keep || bytes > info.free_bytes - keep);
  }

  absl::StatusOr<mge_reservation> Ask(uint64_t bytes, uint64_t alignment, const mge_fence_point* after, uint32_t flags) {
    mge_reservation out = NoMemory();
    mge_error error;
    mge_code code =
        CallBackend(error, [&](mge_error* e) { return api_->acquire(pool_, bytes, alignment, after, flags, &out, e); });
    const std::string what = fmt::format("device {}: the backend's own pool, asked for {} bytes,", device_, bytes);
    const bool waits = code == MGE_NEEDS_WAIT;
    if (code != MGE_OK && !waits) return StatusOfBackend(code, error, what);
    if (out.address && reinterpret_cast<uintptr_t>(out.address) % alignment == 0 && out.bytes >= bytes &&
        waits == (out.ready != nullptr) && (!waits || (flags & MGE_POOL_MAY_WAIT)))
      return out;
    error.text = fmt::format("it gave {} bytes at {}{}", out.bytes, fmt::ptr(out.address),
                             waits == (out.ready != nullptr) ? "" : ", and the fence to wait for does not fit the code");
    Release(out, nullptr);
    return StatusOfBackend(MGE_INTERNAL, error, what);
  }

  const mge_pool_api* api_;
  mge_pool* pool_;
  DeviceSlabs* slabs_;
  std::string device_;
  std::atomic<uint64_t> keep_free_{0};
};

}  // namespace

absl::StatusOr<std::unique_ptr<Pool>> MakeBackendPool(const mge_pool_api* api, mge_device* device, int32_t memory_class,
                                                      DeviceSlabs* slabs, std::string_view device_name) {
  mge_pool* pool = nullptr;
  mge_error error;
  mge_code code =
      CallBackend(error, [&](mge_error* e) { return api->create(device, memory_class, slabs->table(), &pool, e); });
  if (code == MGE_OK && !pool) {
    error.text = "it returned MGE_OK, but no pool";
    code = MGE_INTERNAL;
  }
  if (code != MGE_OK)
    return StatusOfBackend(code, error, fmt::format("device {}: making the backend's own pool", device_name));
  return std::make_unique<BackendPool>(api, pool, slabs, std::string(device_name));
}

}  // namespace mge
