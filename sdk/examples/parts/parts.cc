// SPDX-License-Identifier: Apache-2.0
// A backend with its own pool, reserve policy and strategy.
#include <algorithm>
#include <mutex>
#include <vector>

#include "mge/plugin.hpp"

namespace {

struct Device {
  static mge::Result List(mge::DeviceList& list) {
    list.Add(
        {.name = "host memory", .flags = MGE_DEVICE_HOST_ACCESSIBLE | MGE_DEVICE_SURVIVES_FORK | MGE_DEVICE_ONLY_BY_NAME});
    return {};
  }
  explicit Device(uint32_t) {}
};

// [pool]
// A pool of slabs of whole pages, each used for one reservation. It returns the smallest free slab that is large enough.
class PagePool {
 public:
  static constexpr uint64_t kPage = 64 << 10;

  PagePool(Device&, int32_t /*memory_class*/, const mge::SlabSource& slabs) : slabs_(slabs) {}
  ~PagePool() { Trim(MGE_TRIM_ALL); }

  mge::Result Acquire(const mge::PoolRequest& request, mge_reservation* out) {
    // Slabs begin at multiples of 64. For a larger alignment the address is moved up within its slab.
    uint64_t bytes = request.bytes + (request.alignment > 64 ? request.alignment - 64 : 0);
    std::lock_guard lock(mutex_);
    // Allocated before the slab is taken, so that no slab leaks if this fails. It also lets Release work without allocating.
    used_.reserve(used_.size() + 1);
    free_.reserve(free_.size() + used_.size() + 1);
    auto at = std::find_if(free_.begin(), free_.end(), [&](const mge_slab& s) { return s.bytes >= bytes; });
    mge_slab slab = {};
    if (at != free_.end()) {
      slab = *at;
      free_.erase(at);
      ++stats_.hits;
    } else if (request.flags & MGE_POOL_NO_GROWTH) {
      return {MGE_GROWTH_REQUIRED, "no page is free, and the pool must not grow"};
    } else {
      uint64_t pages = (bytes + kPage - 1) / kPage * kPage;
      mge::Result taken = slabs_.Acquire(pages, &slab, request.error);  // fails here if the budget is exceeded
      if (taken.out_of_memory() && !free_.empty()) {
        GiveBack(0);
        taken = slabs_.Acquire(pages, &slab, request.error);
      }
      if (taken.code() == MGE_OVER_BUDGET) ++stats_.over_budget;
      if (!taken.ok()) return taken;
      ++stats_.slab_acquires;
      stats_.committed += pages;
    }
    used_.push_back(slab);
    stats_.in_use += slab.bytes;
    stats_.peak_in_use = std::max(stats_.peak_in_use, stats_.in_use);
    uintptr_t begin = reinterpret_cast<uintptr_t>(slab.address);
    uint64_t skip = (request.alignment - begin % request.alignment) % request.alignment;
    out->address = static_cast<char*>(slab.address) + skip;
    out->host_address = slab.host_address ? static_cast<char*>(slab.host_address) + skip : nullptr;
    out->bytes = slab.bytes - skip;
    out->token = begin;
    return {};
  }

  // Kernels of this backend run in the calling thread: the last use is over when the memory is released.
  void Release(const mge_reservation& reservation, const mge_fence_point*) {
    std::lock_guard lock(mutex_);
    auto at = std::find_if(used_.begin(), used_.end(),
                           [&](const mge_slab& s) { return reinterpret_cast<uintptr_t>(s.address) == reservation.token; });
    if (at == used_.end()) return;
    stats_.in_use -= at->bytes;
    free_.insert(std::upper_bound(free_.begin(), free_.end(), *at, [](auto& a, auto& b) { return a.bytes < b.bytes; }), *at);
    used_.erase(at);
  }

  void Trim(int32_t how) {
    std::lock_guard lock(mutex_);
    GiveBack(how == MGE_TRIM_EXCESS ? retain_ : 0);
  }

  // Receives the reserve policy's decision: bytes to keep while nothing runs.
  void SetPolicy(const mge_reserve_decision& decision) {
    std::lock_guard lock(mutex_);
    retain_ = decision.retain;
  }

  mge_pool_stats Stats() const {
    std::lock_guard lock(mutex_);
    mge_pool_stats out = stats_;
    out.presence = MGE_POOL_STATS_ALL;
    out.largest_free = free_.empty() ? 0 : free_.back().bytes;
    return out;
  }

 private:
  void GiveBack(uint64_t retain) {
    while (!free_.empty() && stats_.committed > retain) {
      stats_.committed -= free_.back().bytes;
      ++stats_.slab_releases;
      slabs_.Release(free_.back());
      free_.pop_back();
    }
  }

  mge::SlabSource slabs_;
  mutable std::mutex mutex_;
  std::vector<mge_slab> free_;  // sorted by size
  std::vector<mge_slab> used_;
  uint64_t retain_ = 0;
  mge_pool_stats stats_ = {};
};
// [pool]

// [reserve]
// Reserves twice the memory that a plan needs before the first run. The rest is as in the host's policy.
struct TwofoldReserve {
  static mge::Result Decide(Device&, const mge_plan_summary& plan, mge_reserve_decision* out) {
    if (mge::Result r = mge::ReadyReserve("percent:5", plan, out); !r.ok()) return r;
    const bool known = plan.memory_total != 0;
    out->initial = std::min(2 * plan.arena_bytes, known ? plan.memory_free : UINT64_MAX);
    return {};
  }
};
// [reserve]

// [candidates]
// Two kernels for one problem. The host removes what the user's constraints forbid; the strategy orders the rest.
struct Relu {
  static constexpr const char* kOp = "Relu";

  static void Offer(const mge::Problem& p, mge::Offers& offers) {
    if (p.node_count() != 1 || p.input(0).dtype() != MGE_DTYPE_F32 || !p.is_static() || p.adds(0)) {
      return offers.Refuse("only a Relu of float32 by itself, of a known shape");
    }
    offers.Add({.id = "example.relu.whole", .rank = 0, .attributes = MGE_KERNEL_DETERMINISTIC, .cost_us = 1});
    offers.Add({.id = "example.relu.rows",
                .rank = 1,
                .attributes = MGE_KERNEL_DETERMINISTIC | MGE_KERNEL_BATCH_INVARIANT,
                .cost_us = 1,
                .variant = 1});
  }
  Relu(const mge::Problem& p, const mge::Candidate& candidate)
      : count(p.input(0).elements()), chunk(candidate.variant == 1 ? 1024 : std::max<uint64_t>(count, 1)) {}
  void Bind(const mge::Binding& b) {
    x = b.input(0);
    y = b.output(0);
  }
  mge_code Launch(const mge_run* run) const {
    const float* from = mge::At<const float>(run, x);
    float* to = mge::At<float>(run, y);
    mge::ParallelFor(run, (count + chunk - 1) / chunk, [&](uint64_t c) {
      for (uint64_t i = c * chunk; i < std::min(count, (c + 1) * chunk); ++i) to[i] = from[i] < 0 ? 0 : from[i];
    });
    return MGE_OK;
  }

  uint64_t count, chunk;
  mge::Slot x, y;
};
constexpr mge::KernelRow kRelu = mge::Row<Relu>();
// [candidates]

// [strategy]
// The host's order, with batch-invariant candidates first.
struct BatchInvariantFirst {
  static mge::Result Order(Device&, const mge::Choice& choice, std::span<uint32_t> order) {
    if (mge::Result r = mge::ReadyOrder(choice, order); !r.ok()) return r;
    std::stable_partition(order.begin(), order.end(), [&](uint32_t i) { return choice.has(i, MGE_KERNEL_BATCH_INVARIANT); });
    return {};
  }
};
// [strategy]

// [backend]
struct Backend : mge::BackendDefaults {
  static constexpr std::string_view kName = "example_parts", kVersion = "1.0";
  using Device = ::Device;
  using Kernels = mge::Kernels<kRelu>;
  using Pool = PagePool;
  using Reserve = TwofoldReserve;
  using Strategy = BatchInvariantFirst;
};
// [backend]

}  // namespace

MGE_BACKEND(Backend);
