// SPDX-License-Identifier: Apache-2.0
#include "core/plugin/strategy.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "core/base/errors.h"
#include "fmt/format.h"

namespace mge {

absl::Status OrderByHost(const mge_choice& choice, uint32_t* out_order) {
  if (choice.mode < MGE_SELECT_HEURISTIC || choice.mode > MGE_SELECT_REPRODUCIBLE) {
    return Fail(errors::kApiMisuse, fmt::format("{} is not a selection mode", choice.mode));
  }
  if (choice.mode == MGE_SELECT_PROFILE && !choice.measured_us) {
    return Fail(errors::kApiMisuse, "the selection mode profile requires measured times, but there are none");
  }
  const bool by_rank = choice.mode == MGE_SELECT_REPRODUCIBLE;
  auto known = [](double us) { return us >= 0 ? us : std::numeric_limits<double>::infinity(); };
  // Candidates with equal classes are ordered by cost or rank.
  auto class_of = [&](uint32_t i) {
    bool reference = (choice.candidates[i]->attributes & MGE_KERNEL_REFERENCE) != 0;
    return std::pair(reference, choice.mode == MGE_SELECT_PROFILE ? known(choice.measured_us[i]) : 0);
  };
  auto has_cost = [&](uint32_t i) { return !by_rank && choice.candidates[i]->cost_us >= 0; };
  auto key = [&](uint32_t i) {
    const mge_candidate& c = *choice.candidates[i];
    return std::tuple(class_of(i), !has_cost(i), has_cost(i) ? c.cost_us : 0, c.rank,
                      std::string_view(c.id.data, static_cast<size_t>(c.id.size)));
  };
  uint32_t* const end = out_order + choice.candidate_count;
  std::iota(out_order, end, 0u);
  std::sort(out_order, end, [&](uint32_t a, uint32_t b) { return key(a) < key(b); });
  for (uint32_t* begin = out_order; begin != end;) {
    uint32_t* const middle =
        std::find_if(begin, end, [&](uint32_t i) { return class_of(i) != class_of(*begin) || !has_cost(i); });
    uint32_t* const last = std::find_if(middle, end, [&](uint32_t i) { return class_of(i) != class_of(*begin); });
    const std::vector<uint32_t> with_cost(begin, middle), without(middle, last);
    auto rank = [&](uint32_t i) { return choice.candidates[i]->rank; };
    // Only `without` is sorted by rank, so this is no std::merge.
    auto a = with_cost.begin(), b = without.begin();
    while (begin != last) {
      const bool take_b = a == with_cost.end() || (b != without.end() && rank(*b) < rank(*a));
      *begin++ = take_b ? *b++ : *a++;
    }
  }
  return absl::OkStatus();
}

}  // namespace mge
