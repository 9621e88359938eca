// SPDX-License-Identifier: Apache-2.0
// Updates: nodes whose output is written to the memory of their first input, the target.
//
// All nodes that read the target's elements must run before the update. FindUpdates() checks that this is possible, and
// returns the order, which the edges of the graph do not express.
#pragma once

#include <map>
#include <vector>

#include "core/graph/graph.h"
#include "core/plan/plan_context.h"

namespace mge {

struct Group;  // core/plan/cover.h

// An update in a graph.
struct Update {
  NodeId node;
};

// The updates of a graph.
struct Updates {
  std::vector<Update> list;                     // in topological order
  std::map<NodeId, std::vector<NodeId>> after;  // nodes that read a target, with the updates that must come after them
};

// Returns the updates of a graph. `deferred` are the nodes of the continuation, by NodeId. Fails with kInvalidGraph, which
// names the node and the value, if the target must keep its elements: it is an input or a constant of the graph, an output,
// shares the memory of another value, or a node that reads it needs the result of the update.
absl::StatusOr<Updates> FindUpdates(const Graph& graph, const PlanContext& context, const std::vector<bool>& deferred);

// Keeps the candidates of an update's group that can write to the target: they have the in-place pairs that the problem
// requires, and write a plain output. Moves the others to the refusals.
void KeepUpdates(Group& group);

}  // namespace mge
