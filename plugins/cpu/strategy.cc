// SPDX-License-Identifier: Apache-2.0
#include "strategy.h"

#include <algorithm>
#include <numeric>

namespace mge::cpu {
namespace {

bool IsReference(const mge_candidate& c) { return c.attributes & MGE_KERNEL_REFERENCE; }

// Rank and id only: what is left when neither a clock nor an estimate that counts threads may speak.
bool ByRank(const mge_candidate& a, const mge_candidate& b) {
  if (IsReference(a) != IsReference(b)) return IsReference(b);
  if (a.rank != b.rank) return a.rank < b.rank;
  return View(a.id) < View(b.id);
}

// Orders by a time where both have one (not negative), those with a time first.
// Returns -1, 0, 1.
int CompareTimes(double a, double b) {
  bool known_a = a >= 0, known_b = b >= 0;
  if (known_a != known_b) return known_a ? -1 : 1;
  if (!known_a || a == b) return 0;
  return a < b ? -1 : 1;
}

bool ByEstimate(const mge_candidate& a, const mge_candidate& b) {
  if (IsReference(a) != IsReference(b)) return IsReference(b);
  if (int c = CompareTimes(a.cost_us, b.cost_us)) return c < 0;
  return ByRank(a, b);
}

mge_code Order(mge_device*, const mge_choice* choice, uint32_t* out, mge_error* error) noexcept {
  return Guard(error, [&]() -> mge_code {
    if (!Covers(choice, &mge_choice::measured_us)) return Report(error, MGE_INVALID_ARGUMENT, "the choice's struct is too short");
    uint64_t n = choice->candidate_count;
    std::iota(out, out + n, 0u);
    auto candidate = [&](uint32_t i) -> const mge_candidate& { return *choice->candidates[i]; };
    switch (choice->mode) {
      case MGE_SELECT_HEURISTIC:
        std::stable_sort(out, out + n, [&](uint32_t a, uint32_t b) { return ByEstimate(candidate(a), candidate(b)); });
        return MGE_OK;
      case MGE_SELECT_PROFILE:
        if (!choice->measured_us) return Report(error, MGE_INVALID_ARGUMENT, "profile: nothing was measured");
        std::stable_sort(out, out + n, [&](uint32_t a, uint32_t b) {
          if (int c = CompareTimes(choice->measured_us[a], choice->measured_us[b])) return c < 0;
          return ByEstimate(candidate(a), candidate(b));
        });
        return MGE_OK;
      case MGE_SELECT_REPRODUCIBLE:
        std::stable_sort(out, out + n, [&](uint32_t a, uint32_t b) { return ByRank(candidate(a), candidate(b)); });
        return MGE_OK;
      default:
        return Report(error, MGE_UNIMPLEMENTED, "unknown way of selection: " + std::to_string(choice->mode));
    }
  });
}

}  // namespace

const mge_strategy_api kStrategyApi = {sizeof(mge_strategy_api), MGE_ABI_MINOR, Order, MGE_STRATEGY_BY_COST, 0};

}  // namespace mge::cpu
