// SPDX-License-Identifier: Apache-2.0
// Layout choice: one candidate per group and one layout per value, such that kernels and reorders together cost little.
//
// The fastest kernel of a group may need a layout that its neighbours do not have, so that reorders cost more than the
// kernel saves. A choice per group is therefore not enough, and an exact search over the graph takes exponential time. This
// stage is a deterministic local search:
//   1. Forward pass: each group, in topological order, takes the candidate with the least cost of kernel and input reorders.
//   2. Sweeps: backwards and forwards over the groups, each group takes its best candidate for the present layouts of its
//      neighbours. Ends when nothing changes, or after a fixed number of sweeps.
//   3. Regions: a group alone may pay for two reorders where a whole chain in one layout pays for none. For each layout that
//      some candidate requires, and for the plain layout, finds the connected groups that can use it. Gives all of them that
//      layout, sweeps over them, and keeps the result only if it costs less.
//   4. One more sweep over all groups if a region moved.
#pragma once

#include <functional>
#include <vector>

#include "core/graph/graph.h"
#include "core/plan/cover.h"

namespace mge {

// The candidate of a group, with a layout for each operand.
struct GroupChoice {
  int candidate = -1;               // index into the group's offered candidates; -1 if it has none
  std::vector<mge_layout> inputs;   // one per input, never MGE_LAYOUT_ANY
  std::vector<mge_layout> outputs;  // one per output, never MGE_LAYOUT_ANY
  double cost_us = 0;               // cost of the candidate without reorders
  std::string reason;               // for --why
};

// Returns the estimated time, in microseconds, of a reorder of a tensor on that device.
using ReorderUs = std::function<double(Device&, const TensorType&, const mge_layout& from, const mge_layout& to)>;

// Returns one choice per group. order[g] lists the eligible candidates of group g, best first. cost[g][c] is the cost of
// candidate c in microseconds. `groups` are in topological order. Once the run must stop, returns any choices.
std::vector<GroupChoice> ChooseLayouts(const Graph& graph, const std::vector<Group>& groups,
                                       const std::vector<std::vector<int>>& order,
                                       const std::vector<std::vector<double>>& cost, const ReorderUs& reorder_us,
                                       const StopControl* stop = nullptr);

}  // namespace mge
