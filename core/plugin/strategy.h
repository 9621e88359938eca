// SPDX-License-Identifier: Apache-2.0
// Who orders candidates: the backend, or the host where it has no order of its own or asks for the ready-made one.
#pragma once

#include <cstdint>

#include "core/base/status.h"
#include "mge/plugin.h"

namespace mge {

// The table of a backend that orders its candidates itself; nullptr where the host does.
inline const mge_strategy_api* OwnOrder(const mge_plugin& plugin) {
  return plugin.strategy && plugin.strategy->order ? plugin.strategy : nullptr;
}

// Writes the indices of all candidates, best first. Reference candidates come last in every mode; ties are broken by rank,
// then id.
//   heuristic     by estimated cost; unknown costs after known ones
//   profile       by measured time; candidates without one come after those that have it, by estimate
//   reproducible  by rank and id alone
// kApiMisuse for a mode that is none, and for profile without measurements.
absl::Status OrderByHost(const mge_choice& choice, uint32_t* out_order);

}  // namespace mge
