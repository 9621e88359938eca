// SPDX-License-Identifier: Apache-2.0
// Specialises a graph for one signature of inputs.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "core/graph/graph.h"
#include "core/plan/plan_cache.h"
#include "core/plan/plan_context.h"

namespace mge {

// A graph whose inputs have known types.
struct SpecialisedGraph {
  Graph graph;
  std::vector<std::string> pass_log = {};
  int64_t denied_bytes = 0;  // bytes of constants that were not folded because of the host memory's limit
};

// Returns a copy of `graph` whose inputs have these types, after all passes. Fails if the graph is invalid for these types,
// or if `stop` (nullable) is set.
absl::StatusOr<SpecialisedGraph> Specialise(const Graph& graph, std::span<const InputType> inputs,
                                            const PlanContext& context, const StopControl* stop);

}  // namespace mge
