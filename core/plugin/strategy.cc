// SPDX-License-Identifier: Apache-2.0
#include "core/plugin/strategy.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <string_view>
#include <tuple>

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
  auto known = [](double us) { return us >= 0 ? us : std::numeric_limits<double>::infinity(); };
  auto key = [&](uint32_t i) {
    const mge_candidate& c = *choice.candidates[i];
    bool reference = (c.attributes & MGE_KERNEL_REFERENCE) != 0;
    double measured = choice.mode == MGE_SELECT_PROFILE ? known(choice.measured_us[i]) : 0;
    double estimate = choice.mode == MGE_SELECT_REPRODUCIBLE ? 0 : known(c.cost_us);
    return std::tuple(reference, measured, estimate, c.rank, std::string_view(c.id.data, static_cast<size_t>(c.id.size)));
  };
  std::iota(out_order, out_order + choice.candidate_count, 0u);
  std::sort(out_order, out_order + choice.candidate_count, [&](uint32_t a, uint32_t b) { return key(a) < key(b); });
  return absl::OkStatus();
}

}  // namespace mge
