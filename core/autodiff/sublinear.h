// SPDX-License-Identifier: Apache-2.0
// Chooses results of a model that are computed again for its gradients, so that less memory is needed than for all of them.
//
// The nodes, in their order, are cut into blocks. Results that later blocks read are kept. All others are computed again when the
// gradients of their block are computed. The memory then grows with the square root of the number of layers. Source: MegEngine's
// sublinear memory (MGB_SUBLINEAR_MEMORY_*); Chen et al., "Training Deep Nets with Sublinear Memory Cost", 2016.
#pragma once

#include <functional>
#include <span>
#include <vector>

#include "core/graph/graph.h"

namespace mge {

struct SublinearOptions {
  int64_t tries = 10;       // sizes of a block that the linear search tries, and as many that the local one does
  int64_t generations = 0;  // rounds of the genetic search
  int64_t population = 20;  // plans that survive a round; at least 1
  int64_t lower_bound = 0;  // bytes: a plan with a smaller peak keeps more results, those that cost most first
  int64_t workers = 0;      // threads of the search; 0: half of the processors
};

struct SublinearPlan {
  std::vector<bool> again;  // by node: it is computed again
  int64_t peak = 0;         // estimated bytes of results and their gradients that are alive at the same time
  int64_t evaluations = 0;  // peaks of plans that were computed
};

// Returns the peak of a plan in bytes. Several threads call it.
using PeakOfPlan = std::function<int64_t(const std::vector<bool>& again)>;

// Returns the best plan that the search finds, the same for any number of workers. `order` are the graph's nodes in the order of
// their execution. The graph's types must be inferred; an unknown size counts as kUnknownSize. The blocks are
// tried by estimates; if `peak_of` is given, it chooses among the plans that were tried, and guides the generations.
SublinearPlan PlanSublinearMemory(const Graph& graph, std::span<const NodeId> order, const SublinearOptions& options,
                                  const PeakOfPlan& peak_of = {});

}  // namespace mge
