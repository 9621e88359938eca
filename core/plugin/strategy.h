// SPDX-License-Identifier: Apache-2.0
// The order in which kernel candidates are preferred: the backend's own order, or the host's ready-made one.
#pragma once

#include <cstdint>

#include "core/base/status.h"
#include "mge/plugin.h"

namespace mge {

// Returns the strategy table of a backend that orders its candidates itself, or nullptr if the host orders them.
inline const mge_strategy_api* OwnOrder(const mge_plugin& plugin) {
  return plugin.strategy && plugin.strategy->order ? plugin.strategy : nullptr;
}

// Writes the indices of all candidates to `out_order` (choice.candidate_count elements), best first. Reference candidates
// come last in every mode. Ties are broken by rank, then by id.
//   heuristic     candidates with a cost by cost, those without by rank; the two lists are then merged by rank
//   profile       by measured time; candidates without a measurement come after the others, in the order of heuristic
//   reproducible  by rank and id only
//
// The merge takes the first candidate of one list or of the other, whichever has the lower rank. If the ranks are equal, it
// takes the candidate with a cost. A vendor library that returns an order without times gives its kernels the ranks 0, 1, 2
// and so on. A backend's own kernel, with a cost, then comes before the vendor's kernel i if its rank is at most i.
// Fails with kApiMisuse if the mode is unknown, or if the mode is profile and nothing was measured.
absl::Status OrderByHost(const mge_choice& choice, uint32_t* out_order);

}  // namespace mge
