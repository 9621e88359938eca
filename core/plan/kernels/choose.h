// SPDX-License-Identifier: Apache-2.0
// Chooses the kernel and the layouts of each group.
//
// A candidate's own cost is not enough to choose it, since neighbours in different layouts need reorders. Algorithm:
//   1. For each group, orders the candidates (strategy.h of core/plugin). Uses the selection file if it has an entry. Under
//      the strategy PROFILE, uses the times of the tuning cache, measures those that are missing (measure.h), and refuses
//      candidates with wrong results. With select.profiling_timeout_seconds, measures in workers (timing_workers.h), and refuses
//      candidates that they did not survive, unless no other remains.
//   2. Chooses one of the best candidates and the layouts for all groups together (layout_choice.h). This compares
//      candidates with reorders, so a candidate without a time needs one. It counts as 10 % faster than the candidate behind
//      it in the order. If none behind it has a time, it counts as 10 % slower than the candidate before it, and at least
//      1000 us.
//   3. Records the choices for the selection file.
#pragma once

#include <vector>

#include "core/graph/graph.h"
#include "core/plan/cover.h"
#include "core/plan/layout/layout_choice.h"
#include "core/plan/plan_context.h"

namespace mge {

// A cover with one choice for each group. When it is moved, its groups and choices keep their addresses.
struct ChosenKernels {
  Cover cover;  // the candidates have measured times; those with wrong results are refused
  std::vector<GroupChoice> choices;
};

// Returns the choices for a cover of the graph. Fails with kKernelFailed if all candidates of a group are wrong, with
// kBadSetting if only the selection file may be used and lacks an entry, and if `stop` (nullable) is set.
absl::StatusOr<ChosenKernels> ChooseKernels(const Graph& graph, Cover cover, const PlanContext& context,
                                            const StopControl* stop);

}  // namespace mge
