// SPDX-License-Identifier: Apache-2.0
#include "core/plugin/memory/ready_made.h"

#include <algorithm>
#include <memory>
#include <string_view>

#include "core/base/errors.h"
#include "core/plugin/abi_call.h"
#include "core/plugin/memory/pool.h"
#include "core/plugin/memory/pool_util.h"
#include "core/plugin/memory/slab_provider.h"
#include "core/plugin/strategy.h"
#include "core/plugin/tables.h"
#include "fmt/format.h"

namespace mge {
namespace {

Pool* Of(const mge_pool* pool) { return reinterpret_cast<Pool*>(const_cast<mge_pool*>(pool)); }

template <size_t kName>
mge_code Create(mge_device*, int32_t, const mge_slab_provider* provider, mge_pool** out, mge_error* error) {
  return AnswerBackend(error, [&]() -> absl::Status {
    DeviceSlabs* slabs = provider ? DeviceSlabs::Behind(provider) : nullptr;
    if (!slabs) {
      return Fail(errors::kUnsupportedFeature, "a ready-made pool needs the provider that the host gave",
                  {.what = "only that provider knows the fences of the device; wrap the pool, not the provider"});
    }
    MGE_ASSIGN_OR_RETURN(std::unique_ptr<Pool> pool, MakePool(PoolNames()[kName], {}, slabs));
    *out = reinterpret_cast<mge_pool*>(pool.release());
    return absl::OkStatus();
  });
}

void Destroy(mge_pool* pool) { delete Of(pool); }

mge_code Acquire(mge_pool* pool, uint64_t bytes, uint64_t alignment, const mge_fence_point* after, uint32_t flags,
                 mge_reservation* out, mge_error* error) {
  bool waits = false;
  const mge_code code = AnswerBackend(error, [&]() -> absl::Status {
    if (!IsGoodRequest(alignment, flags)) {
      return Fail(errors::kUnsupportedFeature, "a request to a pool has an invalid alignment or flag",
                  {.what = fmt::format("alignment {}, flags {:#x}", alignment, flags)});
    }
    if (!Covers(out, &mge_reservation::ready_value)) flags &= ~uint32_t{MGE_POOL_MAY_WAIT};  // `out` lacks `ready`
    MGE_ASSIGN_OR_RETURN(mge_reservation reservation, Of(pool)->Acquire(bytes, alignment, after, flags));
    waits = reservation.ready != nullptr;
    Fill(out, reservation);
    return absl::OkStatus();
  });
  return code == MGE_OK && waits ? MGE_NEEDS_WAIT : code;
}

void Release(mge_pool* pool, const mge_reservation* reservation, const mge_fence_point* last_use) {
  Of(pool)->Release(Widen(*reservation), last_use);
}

void TrimPool(mge_pool* pool, int32_t how) { Of(pool)->Trim(how); }

void Stats(const mge_pool* pool, mge_pool_stats* out) { Fill(out, Of(pool)->Stats()); }

void SetPolicy(mge_pool* pool, const mge_reserve_decision* decision) { Of(pool)->SetPolicy(Widen(*decision)); }

template <size_t kName>
constexpr mge_pool_api kApi = {
    sizeof(mge_pool_api), MGE_ABI_MINOR, Create<kName>, Destroy, Acquire, Release, TrimPool, Stats, SetPolicy};
constexpr const mge_pool_api* kApis[] = {&kApi<0>, &kApi<1>, &kApi<2>, &kApi<3>};

const mge_pool_api* PoolNamed(void*, const mge_text* name) {
  std::span<const std::string_view> names = PoolNames();
  auto at = std::find(names.begin(), names.end(), std::string_view(name->data, name->size));
  return at == names.end() ? nullptr : kApis[at - names.begin()];
}

mge_code Reserve(void*, const mge_text* policy, const mge_plan_summary* plan, mge_reserve_decision* out, mge_error* error) {
  return AnswerBackend(error, [&]() -> absl::Status {
    MGE_ASSIGN_OR_RETURN(ReservePolicy parsed, ReservePolicy::Parse(CopyText(*policy, 64)));
    Fill(out, parsed.Decide(Widen(*plan)));
    return absl::OkStatus();
  });
}

mge_code Order(void*, const mge_choice* choice, uint32_t* out_order, mge_error* error) {
  return AnswerBackend(error, [&] { return OrderByHost(Widen(*choice), out_order); });
}

}  // namespace

const mge_ready_made* ReadyMade() {
  static constexpr mge_ready_made kTable = {sizeof(mge_ready_made), MGE_ABI_MINOR, nullptr, PoolNamed, Reserve, Order};
  return &kTable;
}

}  // namespace mge
