// SPDX-License-Identifier: Apache-2.0
// Checks of decisions: the reserve policy and the selection strategy. Both must be pure functions.
#include <algorithm>
#include <cstring>

#include "core/conform/backend_under_test.h"
#include "core/conform/kernel_run.h"
#include "core/plugin/strategy.h"
#include "fmt/format.h"

namespace mge::conform {
namespace {

absl::Status CheckDecision(BackendUnderTest& s, const mge_plan_summary& plan) {
  const mge_reserve_api* api = s.plugin().memory->own_reserve;
  const mge_plan_summary before = plan;
  mge_reserve_decision first = {}, second = {};
  first.struct_size = second.struct_size = sizeof(first);
  for (mge_reserve_decision* out : {&first, &second}) {
    MGE_RETURN_IF_ERROR(Call("deciding a reserve", api->decide, s.device(), &plan, out));
  }
  if (std::memcmp(&plan, &before, sizeof(plan)) != 0) return Broken("it writes to the plan's summary");
  if (std::memcmp(&first, &second, sizeof(first)) != 0) {
    return Broken("a second request for the same plan gets another decision");
  }
  if (plan.memory_total && (first.keep_free > plan.memory_total || first.initial > plan.memory_total))
    return Broken("the decision exceeds the device's {} bytes", plan.memory_total);
  if (first.cap && first.initial > first.cap) {
    return Broken("{} bytes are to be taken before the first run, and {} at most at any time", first.initial, first.cap);
  }
  return absl::OkStatus();
}

absl::Status CheckReserve(BackendUnderTest& s) {
  if (!s.plugin().memory->own_reserve) return NotOffered("the backend uses a reserve policy of the host's");
  constexpr uint64_t kMiB = 1 << 20;
  for (uint64_t device : {uint64_t{0}, 4 * kMiB, 1024 * kMiB, 80 * 1024 * kMiB}) {
    for (uint64_t budget : {uint64_t{0}, 64 * kMiB}) {
      const uint64_t total = device && budget ? std::min(device, budget) : device + budget;  // limited by the budget
      for (uint32_t pressure : {MGE_PRESSURE_NONE, MGE_PRESSURE_MODERATE, MGE_PRESSURE_CRITICAL}) {
        mge_plan_summary plan = {sizeof(plan), 1, 0, 0, 0, total / 2, total, budget, pressure, MGE_MEMORY_DEVICE};
        MGE_RETURN_IF_ERROR(CheckDecision(s, plan));  // as for a new pool, before any plan
        plan.concurrency = 2;
        plan.arena_bytes = 10 * kMiB, plan.constant_bytes = 5 * kMiB, plan.workspace_bytes = kMiB;
        MGE_RETURN_IF_ERROR(CheckDecision(s, plan));
      }
    }
  }
  return absl::OkStatus();
}

// Checks a strategy with invented candidates, because it may use only their fields and must not know their ids.
absl::Status CheckStrategy(BackendUnderTest& s) {
  const mge_strategy_api* api = OwnOrder(s.plugin());
  if (!api) return NotOffered("the backend uses the host's order");
  Offers offers;
  MGE_ASSIGN_OR_RETURN(Case c, FirstSupportedCase(s, &offers));
  AbiProblem problem(c, MGE_WRITE);
  constexpr size_t kCount = 5;
  const std::string ids[kCount] = {"made.up.0", "made.up.1", "made.up.2", "made.up.3", "made.up.4"};
  std::vector<mge_candidate> candidates(kCount, offers.offered[0].ToAbi().candidate);
  std::vector<const mge_candidate*> list;
  for (size_t i = 0; i < kCount; ++i) {
    mge_candidate& k = candidates[i];
    k.id = {ids[i].data(), ids[i].size()};
    k.rank = static_cast<int32_t>((i * 3) % kCount);
    k.cost_us = i == 2 ? -1 : static_cast<double>((i * 2) % kCount) + 1;
    k.input_layouts = k.output_layouts = nullptr;
    k.in_place = nullptr;
    k.in_place_count = 0;
    list.push_back(&k);
  }
  const double quick[kCount] = {1, 2, 3, 4, 5}, slow[kCount] = {5, 4, 3, 2, 1};
  auto order = [&](int32_t mode, const double* measured) -> absl::StatusOr<std::vector<uint32_t>> {
    mge_choice choice = {sizeof(choice), mode, problem.get(), list.data(), kCount, measured};
    std::vector<uint32_t> out(kCount, 12345);
    MGE_RETURN_IF_ERROR(Call("ordering candidates", api->order, s.device(), &choice, out.data()));
    if (!std::ranges::is_permutation(out, std::initializer_list<uint32_t>{0, 1, 2, 3, 4}))
      return Broken("in mode {} the result is no permutation of {} candidates", mode, kCount);
    return out;
  };
  for (int32_t mode : {MGE_SELECT_HEURISTIC, MGE_SELECT_PROFILE, MGE_SELECT_REPRODUCIBLE}) {
    const double* measured = mode == MGE_SELECT_PROFILE ? quick : nullptr;
    MGE_ASSIGN_OR_RETURN(std::vector<uint32_t> first, order(mode, measured));
    MGE_ASSIGN_OR_RETURN(std::vector<uint32_t> second, order(mode, measured));
    if (first != second) return Broken("in mode {} a second request for the same candidates gets another order", mode);
  }
  MGE_ASSIGN_OR_RETURN(std::vector<uint32_t> one, order(MGE_SELECT_REPRODUCIBLE, quick));
  MGE_ASSIGN_OR_RETURN(std::vector<uint32_t> other, order(MGE_SELECT_REPRODUCIBLE, slow));
  if (one != other) return Broken("the mode REPRODUCIBLE depends on measured times");
  // The order must not depend on the positions in the list.
  std::reverse(list.begin(), list.end());
  MGE_ASSIGN_OR_RETURN(std::vector<uint32_t> reversed, order(MGE_SELECT_REPRODUCIBLE, nullptr));
  for (uint32_t& position : reversed) position = kCount - 1 - position;
  return reversed == one ? absl::OkStatus()
                         : Broken("the mode REPRODUCIBLE depends on the order in which candidates are listed");
}

constexpr Check kRows[] = {
    {"reserve.pure", "A reserve decision depends only on the plan, and does not exceed the device's memory.", CheckReserve},
    {"strategy.order", "The strategy orders all candidates, always in the same way; the mode REPRODUCIBLE uses no times.",
     CheckStrategy},
};

}  // namespace

std::span<const Check> PolicyChecks() { return kRows; }

}  // namespace mge::conform
