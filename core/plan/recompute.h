// SPDX-License-Identifier: Apache-2.0
// Computes results of a graph again, so that no more than a budget is alive at a time.
//
// Algorithm: finds the place with the most bytes. Takes the result that lives across it and costs least time for each byte that
// its renewed computation saves, and computes it again for its readers behind that place. What the computation needs and
// what is no longer there is computed again, too. Repeats this until the budget holds. A result that was computed again may be
// dropped and computed once more, so that a long chain needs the logarithm of its length. Sources: T. Chen et al., "Training Deep
// Nets with Sublinear Memory Cost", 2016; the pass HloRematerialization of XLA.
#pragma once

#include <cstdint>

#include "core/graph/graph.h"

namespace mge {

struct Recomputed {
  bool fits = false;              // at most the budget is alive at a time
  int64_t before = 0, after = 0;  // the most bytes alive at a time (FindLiveResults()); `after`: the least that was reached
  int nodes = 0;                  // that were added
  double work = 0;                // their share of the work of the graph: 0.2 is 20 % more
};

// Adds nodes that compute results again until at most `budget` bytes are alive at a time. The graph's types must be inferred. If it
// does not fit, the graph is of no further use.
absl::StatusOr<Recomputed> RecomputeWithin(Graph& graph, int64_t budget);

}  // namespace mge
