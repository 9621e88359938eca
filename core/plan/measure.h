// SPDX-License-Identifier: Apache-2.0
// Times the candidates of a group on their device, and holds their results against those of the reference evaluators.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "core/plan/cover.h"
#include "core/plan/selection.h"

namespace mge {

struct Measurement {
  double us = -1;      // the least of some warm runs; negative: there is none, for `fault`
  std::string fault;   // why it cannot be taken, or was not timed; with a time: why its results were not checked
  bool wrong = false;  // its results are not those of the reference
  bool unchecked = false;  // there was nothing to hold its results against, or nothing that could tell
  bool kept = false;   // the same would be found again: worth to be remembered
};

// One for each of `which` (indices of the group's offered candidates). Inputs are seeded and not zero. Where what is right
// for them is the same throughout, others are checked as well; a candidate is unchecked if it is the same for those too. What
// the evaluators cannot compute is held against a candidate that is marked as the reference, if there is one; random results
// against none. A candidate that fails, or is wrong, is an answer; an error is what concerns them all.
absl::StatusOr<std::vector<Measurement>> MeasureCandidates(const Graph& graph, const Group& group,
                                                           std::span<const int> which, uint32_t threads,
                                                           const MeasureLimits& limits);

}  // namespace mge
