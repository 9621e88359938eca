// SPDX-License-Identifier: Apache-2.0
// Which of several candidates is best. The host has filtered them already, and refuses anything but
// an order of them all.
#include <algorithm>
#include <numeric>

#include "tables.h"

namespace mge::null {
namespace {

mge_code Order(mge_device*, const mge_choice* choice, uint32_t* out_order, mge_error*) noexcept {
  uint32_t* end = out_order + choice->candidate_count;
  std::iota(out_order, end, 0u);
  // The id decides between equals, so that in the mode REPRODUCIBLE the answer depends on problem
  // and candidates alone.
  std::sort(out_order, end, [&](uint32_t a, uint32_t b) {
    if (choice->mode == MGE_SELECT_PROFILE && choice->measured_us &&
        choice->measured_us[a] != choice->measured_us[b]) {
      return choice->measured_us[a] < choice->measured_us[b];
    }
    const mge_candidate *x = choice->candidates[a], *y = choice->candidates[b];
    if (x->rank != y->rank) return x->rank < y->rank;
    return View(x->id) < View(y->id);
  });
  return MGE_OK;
}

}  // namespace

const mge_strategy_api kStrategyTable = {sizeof(mge_strategy_api), MGE_ABI_MINOR, Order};

}  // namespace mge::null
