// SPDX-License-Identifier: Apache-2.0
// An order of the groups of a cover, kept while nodes are joined: tells whether a join would form a cycle.
//
// A walk over the whole graph for each claim would take quadratic time. This file keeps a topological order of the groups
// instead, as in D. Pearce and P. Kelly, "A Dynamic Topological Sort Algorithm for Directed Acyclic Graphs", 2007:
//   1. Each node starts as a group. Its label is its place in a topological order of the nodes.
//   2. A path that leaves a set of groups and enters it again has rising labels. The search for one therefore visits only
//      groups whose labels are below the largest one of the set.
//   3. The joined group gets the label of its last member. The groups that the search visited move directly after it.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "absl/functional/function_ref.h"
#include "core/graph/graph.h"

namespace mge {

class GroupOrder {
 public:
  // Calls visit(next) for every node that must run after `node`.
  using ForEachNext = std::function<void(NodeId node, absl::FunctionRef<void(NodeId next)> visit)>;

  // A join that forms no cycle.
  struct Join {
    std::vector<NodeId> nodes;
    std::vector<NodeId> moved;  // first members of the groups that must come after the joined group, in their order
  };

  // `order` has the nodes of a graph in topological order. `next` must stay the same while this object exists.
  GroupOrder(std::span<const NodeId> order, NodeId node_count, ForEachNext next);

  // Returns the join of the nodes, each of which must be a group of its own. Returns nothing if a path leaves them and comes
  // back. Returns nothing, too, if many searches were long and this one is, and sets gave_up(): the sum of all searches is
  // linear in the size of the graph.
  std::optional<Join> Find(std::span<const NodeId> nodes);
  // Joins the nodes. No other join may have been applied since Find().
  void Apply(const Join& join);

  // Returns whether the latest search gave up.
  bool gave_up() const { return gave_up_; }
  // Returns the number of edges and groups that all calls have visited.
  int64_t visits() const { return visits_; }

 private:
  static constexpr int64_t kFreeVisits = 1024;  // of a search after all others have used up the rest
  static constexpr int64_t kVisitsPerNode = 64;

  void MoveAfter(NodeId last, std::span<const NodeId> groups);
  void Relabel();

  ForEachNext next_;
  int64_t visits_ = 0, limit_;
  bool gave_up_ = false;
  int32_t search_ = 0;
  NodeId first_ = kNone;                   // the group with the smallest label
  std::vector<NodeId> group_;              // by node: the first member of its group
  std::vector<NodeId> member_;             // by node: the next member of its group, in a circle
  std::vector<int64_t> label_;             // by group
  std::vector<NodeId> after_, before_;     // by group: its neighbours in the order of labels
  std::vector<int32_t> inside_, reached_;  // by group: the last search that had it in its set, or that visited it
};

}  // namespace mge
