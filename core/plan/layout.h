// SPDX-License-Identifier: Apache-2.0
// Layouts: one candidate per group and one layout per value, so that kernels and reorders together cost least.
#pragma once

#include <functional>
#include <vector>

#include "core/graph/graph.h"
#include "core/plan/cover.h"

namespace mge {

struct GroupChoice {
  int candidate = -1;                // index into the group's offered candidates; -1 where there are none
  std::vector<mge_layout> inputs;    // per operand, nothing is ANY any more
  std::vector<mge_layout> outputs;
  double cost_us = 0;                // of the candidate
  std::string reason;
};

// What a reorder of a tensor by that device is taken to cost.
using ReorderUs = std::function<double(Device&, const TensorType&, const mge_layout& from, const mge_layout& to)>;

// order[g]: the candidates of group g to choose from, best first; cost[g][c]: what candidate c is taken to cost.
// Local search from a forward guess, in moves of one group and of all connected groups that can take one layout:
// deterministic.
std::vector<GroupChoice> ChooseLayouts(const Graph& graph, const std::vector<Group>& groups,
                                       const std::vector<std::vector<int>>& order,
                                       const std::vector<std::vector<double>>& cost, const ReorderUs& reorder_us);

// The layout in words that are equal for equal bytes: a permutation that moves dimensions of size 1 only is plain.
mge_layout Canonical(const mge_layout& layout, std::span<const int64_t> dims);

}  // namespace mge
