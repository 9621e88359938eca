// SPDX-License-Identifier: Apache-2.0
// Pools, which keep memory between uses, and reserve policies, which decide how much. A backend names one of the host's, or
// provides its own class:
//
//   using Pool = mge::pool::Growing;          // Naive, Round, Unpooled, Growing
//   using Reserve = mge::reserve::Percent<5>; // Percent<n>, Bytes<n>, All, None
//
//   class MyPool {                            // called from several threads
//    public:
//     MyPool(Device&, int32_t memory_class, const mge::SlabSource& slabs);
//     mge::Result Acquire(const mge::PoolRequest& request, mge_reservation* out);
//     void Release(const mge_reservation& reservation, const mge_fence_point* last_use);
//     void Trim(int32_t how);
//     mge_pool_stats Stats() const;
//     void SetPolicy(const mge_reserve_decision& decision);  // optional: receives `retain` and `step`
//   };
//   struct MyReserve {                        // decides without side effects; the host's budget always applies
//     static mge::Result Decide(Device&, const mge_plan_summary& plan, mge_reserve_decision* out);
//   };
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

#include "mge/plugin/error.hpp"
#include "mge/plugin/visibility.hpp"

namespace mge MGE_HIDDEN {

// Returns a fence of the host as the backend's own class, or nullptr if there is nothing to wait for.
template <typename F>
F* FenceOf(mge_fence* fence) {
  return reinterpret_cast<F*>(fence);
}
template <typename F>
F* FenceOf(const mge_fence_point* point) {
  return point ? FenceOf<F>(point->fence) : nullptr;
}

// The source of a pool's memory: the host, which charges the device's budget and calls Memory::Acquire.
class SlabSource {
 public:
  explicit SlabSource(const mge_slab_provider* provider) : provider_(provider) {}
  // Acquires a slab. `error` is the request's: if the budget refuses the slab, it receives the host's text.
  Result Acquire(uint64_t bytes, mge_slab* out, mge_error* error) const {
    *out = {};
    out->struct_size = sizeof(*out);
    return {provider_->acquire(provider_->self, bytes, out, error), ""};
  }
  void Release(const mge_slab& slab) const { provider_->release(provider_->self, &slab); }
  const mge_slab_provider* raw() const { return provider_; }

 private:
  const mge_slab_provider* provider_;
};

// The arguments of Acquire().
struct PoolRequest {
  uint64_t bytes;
  uint64_t alignment;
  const mge_fence_point* after;  // the memory is used once this is reached; NULL: at once
  // MGE_POOL_NO_GROWTH: if no free block fits, return MGE_GROWTH_REQUIRED. MGE_POOL_MAY_WAIT: the pool may set `ready`,
  // which becomes MGE_NEEDS_WAIT.
  uint32_t flags;
  mge_error* error;
};

// A pool of the host as a class: derive from it and hide the functions to change, or use it as a member.
class ReadyPool {
 public:
  template <typename D>
  ReadyPool(std::string_view name, D& device, int32_t memory_class, const SlabSource& slabs)
      : name_(name), device_(internal::HandleOf<mge_device>(&device)), memory_class_(memory_class), slabs_(slabs) {}
  ~ReadyPool() {
    if (pool_) api_->destroy(pool_);
  }
  ReadyPool(const ReadyPool&) = delete;
  ReadyPool& operator=(const ReadyPool&) = delete;

  Result Init() {
    const mge_ready_made* ready = ReadyMade();
    mge_text name = Text(name_);
    api_ = ready ? ready->pool(ready->self, &name) : nullptr;
    if (!api_) return {MGE_UNIMPLEMENTED, "this host has no pool '" + std::string(name_) + "'"};
    mge_code code = api_->create(device_, memory_class_, slabs_.raw(), &pool_, nullptr);
    return code == MGE_OK ? Result() : Result(code, "the host's pool '" + std::string(name_) + "' could not be made");
  }
  Result Acquire(const PoolRequest& r, mge_reservation* out) {
    *out = {};
    out->struct_size = sizeof(*out);
    mge_code code = api_->acquire(pool_, r.bytes, r.alignment, r.after, r.flags, out, r.error);
    return {code == MGE_NEEDS_WAIT ? MGE_OK : code, ""};  // `ready` carries that result
  }
  void Release(const mge_reservation& reservation, const mge_fence_point* last_use) {
    api_->release(pool_, &reservation, last_use);
  }
  void Trim(int32_t how) { api_->trim(pool_, how); }
  mge_pool_stats Stats() const {
    mge_pool_stats stats = {};
    stats.struct_size = sizeof(stats);
    api_->stats(pool_, &stats);
    return stats;
  }
  void SetPolicy(const mge_reserve_decision& decision) {
    if (Covers(api_, &mge_pool_api::set_policy)) api_->set_policy(pool_, &decision);
  }

 private:
  std::string_view name_;
  mge_device* device_;
  int32_t memory_class_;
  SlabSource slabs_;
  const mge_pool_api* api_ = nullptr;
  mge_pool* pool_ = nullptr;
};

// The host's own pools.
namespace pool {
struct Naive {
  static constexpr std::string_view kReadyMade = "naive";
};  // keeps slabs by size
struct Round {
  static constexpr std::string_view kReadyMade = "round";
};  // like Naive, with sizes rounded up to powers of two
struct Unpooled {
  static constexpr std::string_view kReadyMade = "unpooled";
};  // keeps nothing
struct Growing {
  static constexpr std::string_view kReadyMade = "growing";
};  // cuts few large slabs, best fit
}  // namespace pool

namespace internal {

// Text with a number at its end ("bytes:64"), as a constant.
template <uint64_t kNumber>
struct Worded {
  template <size_t kSize>
  static constexpr auto After(const char (&word)[kSize]) {
    std::array<char, kSize + 20> out = {};
    size_t n = 0;
    for (; n + 1 < kSize; ++n) out[n] = word[n];
    size_t digits = 1;
    for (uint64_t rest = kNumber / 10; rest; rest /= 10) ++digits;
    uint64_t rest = kNumber;
    for (size_t i = digits; i-- > 0; rest /= 10) out[n + i] = static_cast<char>('0' + rest % 10);
    return out;  // ended by zeros
  }
};

}  // namespace internal

// The host's own reserve policies.
namespace reserve {
template <unsigned kPercent>  // leave that share of the device free
struct Percent {
  static_assert(kPercent <= 100, "a part of a device is at most 100 percent");
  static constexpr auto kText = internal::Worded<kPercent>::After("percent:");
  static constexpr std::string_view kReadyMade = kText.data();
};
template <uint64_t kBytes>  // take that many bytes before the first run
struct Bytes {
  static constexpr auto kText = internal::Worded<kBytes>::After("bytes:");
  static constexpr std::string_view kReadyMade = kText.data();
};
struct All {
  static constexpr std::string_view kReadyMade = "all";
};  // nearly all memory, before the first run
struct None {
  static constexpr std::string_view kReadyMade = "none";
};  // grow on demand
}  // namespace reserve

// Returns the decision of a policy of the host ("percent:5", "bytes:64MiB", "all", "none"), as a start for the backend's
// own.
inline Result ReadyReserve(std::string_view policy, const mge_plan_summary& plan, mge_reserve_decision* out) {
  const mge_ready_made* ready = ReadyMade();
  if (!ready) return {MGE_UNIMPLEMENTED, "this host has no reserve policies of its own"};
  mge_text text = Text(policy);
  *out = {};
  out->struct_size = sizeof(*out);
  mge_code code = ready->reserve(ready->self, &text, &plan, out, nullptr);
  return code == MGE_OK ? Result() : Result(code, "the host does not take the reserve policy '" + std::string(policy) + "'");
}

namespace internal {

// Returns whether these headers know the memory class. A newer host may request another one, which is refused.
inline bool KnownClass(int32_t memory_class) { return memory_class >= 0 && memory_class < MGE_MEMORY_CLASS_COUNT; }
inline mge_code RefuseClass(mge_error* error) { return Report(error, MGE_UNIMPLEMENTED, "unknown memory class"); }

template <typename D, typename P>
struct PoolTable {
  static mge_code Create(mge_device* device, int32_t memory_class, const mge_slab_provider* provider, mge_pool** out,
                         mge_error* error) noexcept {
    if (!KnownClass(memory_class)) return RefuseClass(error);
    return Make<P>(out, error, As<D>(device), memory_class, SlabSource(provider));
  }
  static mge_code Acquire(mge_pool* pool, uint64_t bytes, uint64_t alignment, const mge_fence_point* after, uint32_t flags,
                          mge_reservation* out, mge_error* error) noexcept {
    bool waits = false;
    if (!Covers(out, &mge_reservation::ready_value)) flags &= ~uint32_t{MGE_POOL_MAY_WAIT};  // no member for the fence
    mge_code code = FillOut(error, out, [&](mge_reservation* reservation) -> Result {
      if (flags & ~MGE_POOL_KNOWN_BITS) return {MGE_UNIMPLEMENTED, "unknown flag of acquire"};
      Result r = As<P>(pool).Acquire({bytes, alignment, after, flags, error}, reservation);
      waits = r.ok() && reservation->ready;
      return r;
    });
    return waits ? MGE_NEEDS_WAIT : code;
  }
  static void Release(mge_pool* pool, const mge_reservation* reservation, const mge_fence_point* last_use) noexcept {
    Quietly([&] { As<P>(pool).Release(Whole(*reservation), last_use); });
  }
  static void Trim(mge_pool* pool, int32_t how) noexcept {
    Quietly([&] { As<P>(pool).Trim(how); });
  }
  static void Stats(const mge_pool* pool, mge_pool_stats* out) noexcept {
    Fill(out, Quietly([&]() -> mge_pool_stats { return reinterpret_cast<const P*>(pool)->Stats(); }));
  }
  static void SetPolicy(mge_pool* pool, const mge_reserve_decision* decision) noexcept {
    Quietly([&] { As<P>(pool).SetPolicy(Whole(*decision)); });
  }
  static constexpr mge_pool_api kApi = Table<mge_pool_api>([](auto& t) {
    t.create = Create;
    t.destroy = Unmake<P, mge_pool>;
    t.acquire = Acquire;
    t.release = Release;
    t.trim = Trim;
    t.stats = Stats;
    if constexpr (requires { &P::SetPolicy; }) t.set_policy = SetPolicy;
  });
};

template <typename D, typename R>
struct ReserveTable {
  static mge_code Decide(mge_device* device, const mge_plan_summary* plan, mge_reserve_decision* out,
                         mge_error* error) noexcept {
    return FillOut(error, out,
                   [&](mge_reserve_decision* decision) { return R::Decide(As<D>(device), Whole(*plan), decision); });
  }
  static constexpr mge_reserve_api kApi = Table<mge_reserve_api>([](auto& t) { t.decide = Decide; });
};

}  // namespace internal
}  // namespace MGE_HIDDEN
