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
//   heuristic     by estimated cost; unknown costs after known ones
//   profile       by measured time; candidates without a measurement come after the others, by estimated cost
//   reproducible  by rank and id only
// Fails with kApiMisuse if the mode is unknown, or if the mode is profile and nothing was measured.
absl::Status OrderByHost(const mge_choice& choice, uint32_t* out_order);

}  // namespace mge
