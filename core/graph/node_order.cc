// SPDX-License-Identifier: Apache-2.0
// The topological order of a graph's nodes: Graph::TopologicalOrder().
//
// Algorithm: Kahn's, which takes the waiting node with the lowest id first, so that the order of a model's file is kept. Then
// nodes that compute something again are delayed. If nodes remain, they wait for one another: that is a cycle.
#include <algorithm>
#include <numeric>
#include <queue>

#include "core/base/errors.h"
#include "core/graph/graph.h"
#include "fmt/format.h"

namespace mge {
namespace {

class NodeOrder {
 public:
  explicit NodeOrder(const Graph& graph) : graph_(graph), waiting_(Count(), 0), first_(Count() + 1, 0) {
    for (NodeId id = 0; id < graph_.node_count(); ++id) {
      if (graph_.node(id).dead) continue;
      ++live_;
      ForEachProducer(id, [&](NodeId p) {
        ++first_[static_cast<size_t>(p) + 1];
        ++waiting_[id];
      });
    }
    std::partial_sum(first_.begin(), first_.end(), first_.begin());
    followers_.resize(first_.back());
    std::vector<size_t> next(first_.begin(), first_.end() - 1);
    for (NodeId id = 0; id < graph_.node_count(); ++id) {
      if (!graph_.node(id).dead) ForEachProducer(id, [&](NodeId p) { followers_[next[p]++] = id; });
    }
  }

  // Sorts the nodes. Returns false if there is a cycle.
  bool Sort(std::vector<NodeId>* order) {
    std::priority_queue<NodeId, std::vector<NodeId>, std::greater<>> ready;
    for (NodeId id = 0; id < graph_.node_count(); ++id) {
      if (!graph_.node(id).dead && waiting_[id] == 0) ready.push(id);
    }
    order->reserve(live_);
    while (!ready.empty()) {
      const NodeId id = ready.top();
      ready.pop();
      order->push_back(id);
      for (const NodeId follower : FollowersOf(id)) {
        if (--waiting_[follower] == 0) ready.push(follower);
      }
    }
    return order->size() == live_;
  }

  // Delays nodes that compute something again, and those that depend on them, until right before a node that needs them. Else
  // their results would need memory from an early time on. Requires: `order` is sorted.
  std::vector<NodeId> Delay(std::vector<NodeId> order) const {
    std::vector<char> delayed(Count(), 0);
    std::vector<int> depth(Count(), 0);  // number of nodes on the longest path to the node
    bool any = false;
    for (NodeId id : order) {
      delayed[id] = graph_.node(id).recomputed;
      ForEachProducer(id, [&](NodeId p) {
        delayed[id] |= delayed[p];
        depth[id] = std::max(depth[id], depth[p] + 1);
      });
      any |= delayed[id] != 0;
    }
    if (!any) return order;
    std::vector<NodeId> out;
    std::vector<char> placed(Count(), 0);
    for (NodeId id : order) {
      if (!delayed[id]) PlaceWithProducers(id, depth, placed, out);
    }
    // The updates of the last layers' parameters can run first.
    std::stable_sort(order.begin(), order.end(), [&](NodeId a, NodeId b) { return depth[a] < depth[b]; });
    for (NodeId id : order) {
      if (FollowersOf(id).empty()) PlaceWithProducers(id, depth, placed, out);
    }
    return out;
  }

  // Returns the nodes of a cycle as a sentence. Every waiting node has a producer that waits too, so walking back must reach a
  // visited node. Requires: Sort() returned false.
  std::string DescribeCycle() const {
    auto waits = [&](NodeId id) { return !graph_.node(id).dead && waiting_[id] > 0; };
    NodeId at = 0;
    while (!waits(at)) ++at;
    std::vector<char> seen(Count(), 0);
    std::vector<NodeId> path;
    while (!seen[at]) {
      seen[at] = 1;
      path.push_back(at);
      NodeId back = kNone;
      ForEachProducer(at, [&](NodeId p) {
        if (back == kNone && waits(p)) back = p;
      });
      MGE_CHECK(back != kNone);
      at = back;
    }
    path.erase(path.begin(), std::find(path.begin(), path.end(), at));
    constexpr size_t kShown = 8;
    std::string text;
    for (size_t i = 0; i < std::min(path.size(), kShown); ++i) {
      const Node& n = graph_.node(path[i]);
      text += fmt::format("'{}' ({}) needs ", n.name, n.op);
    }
    if (path.size() > kShown) text += fmt::format("{} more, which need ", path.size() - kShown);
    return text + fmt::format("'{}'", graph_.node(path[0]).name);
  }

 private:
  size_t Count() const { return static_cast<size_t>(graph_.node_count()); }

  template <typename F>
  void ForEachProducer(NodeId id, F visit) const {
    const Node& node = graph_.node(id);
    for (const auto* list : {&node.inputs, &node.captures}) {
      for (ValueId v : *list) {
        if (v != kNone && graph_.value(v).producer != kNone) visit(graph_.value(v).producer);
      }
    }
  }
  std::span<const NodeId> FollowersOf(NodeId id) const {
    const size_t begin = first_[id], end = first_[static_cast<size_t>(id) + 1];
    return std::span(followers_).subspan(begin, end - begin);
  }

  // Appends the nodes that `root` needs and that are not placed yet, and then `root`: a depth-first search without recursion.
  void PlaceWithProducers(NodeId root, const std::vector<int>& depth, std::vector<char>& placed,
                          std::vector<NodeId>& out) const {
    std::vector<NodeId> open = {root};
    while (!open.empty()) {
      const NodeId id = open.back();
      const size_t before = open.size();
      if (!placed[id]) {
        ForEachProducer(id, [&](NodeId p) {
          if (!placed[p]) open.push_back(p);
        });
      }
      if (open.size() > before) {
        // The gradients come before the recomputed results that they are multiplied by.
        std::sort(open.begin() + static_cast<std::ptrdiff_t>(before), open.end(),
                  [&](NodeId a, NodeId b) { return depth[a] < depth[b]; });
        continue;
      }
      if (!placed[id]) out.push_back(id);
      placed[id] = 1;
      open.pop_back();
    }
  }

  const Graph& graph_;
  std::vector<int> waiting_;   // per node: number of producers that are not sorted yet
  std::vector<size_t> first_;  // the followers of node p are at [first_[p], first_[p + 1]) of `followers_`
  std::vector<NodeId> followers_;
  size_t live_ = 0;
};

}  // namespace

absl::StatusOr<std::vector<NodeId>> Graph::TopologicalOrder() const {
  NodeOrder nodes(*this);
  std::vector<NodeId> order;
  if (!nodes.Sort(&order)) {
    return Fail(errors::kInvalidGraph, "the graph has a cycle", {.what = nodes.DescribeCycle()});
  }
  return nodes.Delay(std::move(order));
}

}  // namespace mge
