// SPDX-License-Identifier: Apache-2.0
#include "core/plan/group_order.h"

#include <algorithm>
#include <numeric>
#include <random>
#include <vector>

#include "gtest/gtest.h"

namespace mge {
namespace {

using Edges = std::vector<std::vector<NodeId>>;

GroupOrder OrderOf(const Edges& edges) {
  std::vector<NodeId> order(edges.size());
  std::iota(order.begin(), order.end(), 0);
  return GroupOrder(order, static_cast<NodeId>(edges.size()), [&edges](NodeId id, absl::FunctionRef<void(NodeId)> visit) {
    for (NodeId next : edges[id]) visit(next);
  });
}

// Joins the nodes if that forms no cycle. Returns whether it did.
bool Join(GroupOrder& order, const std::vector<NodeId>& nodes) {
  const auto join = order.Find(nodes);
  if (join) order.Apply(*join);
  return join.has_value();
}

TEST(GroupOrder, RefusesNodesThatAPathLeavesAndEntersAgain) {
  const Edges diamond = {{1, 2}, {3}, {3}, {}};
  GroupOrder order = OrderOf(diamond);
  EXPECT_FALSE(Join(order, {0, 3}));
  EXPECT_FALSE(Join(order, {0, 1, 3}));
  EXPECT_TRUE(Join(order, {0, 1, 2, 3}));
}

TEST(GroupOrder, SeesPathsThroughGroups) {
  // 0 -> 1, 2 -> 3: each pair alone is possible, but 0 with 3 and 2 with 1 would wait for each other.
  const Edges edges = {{1}, {}, {3}, {}};
  GroupOrder order = OrderOf(edges);
  EXPECT_TRUE(Join(order, {0, 3}));
  EXPECT_FALSE(Join(order, {2, 1}));
}

// Returns whether the groups form a cycle, by Kahn's algorithm.
bool HasCycle(const Edges& edges, const std::vector<int>& group) {
  std::vector<std::vector<int>> next(edges.size());
  std::vector<int> waits(edges.size(), 0);
  for (size_t a = 0; a < edges.size(); ++a) {
    for (NodeId b : edges[a]) {
      if (group[a] == group[b]) continue;
      next[group[a]].push_back(group[b]);
      ++waits[group[b]];
    }
  }
  std::vector<int> ready;
  for (size_t g = 0; g < edges.size(); ++g) {
    if (waits[g] == 0) ready.push_back(static_cast<int>(g));
  }
  size_t done = 0;
  for (; !ready.empty(); ++done) {
    const int g = ready.back();
    ready.pop_back();
    for (int h : next[g]) {
      if (--waits[h] == 0) ready.push_back(h);
    }
  }
  return done < edges.size();
}

TEST(GroupOrder, AgreesWithASearchOfTheWholeGraph) {
  for (uint32_t seed = 0; seed < 300; ++seed) {
    std::mt19937 random(seed);
    const int count = 4 + static_cast<int>(random() % 20);
    Edges edges(count);
    for (int a = 0; a < count; ++a) {
      for (int b = a + 1; b < count; ++b) {
        if (random() % 5 == 0) edges[a].push_back(b);
      }
    }
    GroupOrder order = OrderOf(edges);
    std::vector<int> group(count);
    std::iota(group.begin(), group.end(), 0);
    std::vector<bool> taken(count, false);
    for (int attempt = 0; attempt < 20; ++attempt) {
      std::vector<NodeId> nodes;
      std::vector<int> joined = group;
      for (int id = 0; id < count; ++id) {
        if (taken[id] || random() % 4 != 0) continue;
        nodes.push_back(id);
        joined[id] = nodes.front();
      }
      if (nodes.size() < 2) continue;
      const bool possible = Join(order, nodes);
      ASSERT_EQ(possible, !HasCycle(edges, joined)) << "seed " << seed << ", attempt " << attempt;
      if (!possible) continue;
      group = joined;
      for (NodeId id : nodes) taken[id] = true;
    }
  }
}

TEST(GroupOrder, VisitsFewGroupsForEachPairOfAChain) {
  constexpr int kNodes = 10000;
  Edges chain(kNodes);
  for (int i = 0; i + 1 < kNodes; ++i) chain[i].push_back(i + 1);
  GroupOrder order = OrderOf(chain);
  for (int i = 0; i < kNodes; i += 2) ASSERT_TRUE(Join(order, {i, i + 1}));
  EXPECT_LT(order.visits(), 10 * kNodes);
}

TEST(GroupOrder, LimitsTheSumOfLongSearches) {
  // Each node i < kPairs leads to a long chain and to the node that would join it.
  constexpr int kPairs = 2000, kChain = 4000;
  Edges edges(kPairs + kChain + kPairs);
  for (int i = 0; i < kPairs; ++i) edges[i] = {kPairs, kPairs + kChain + i};
  for (int i = 0; i + 1 < kChain; ++i) edges[kPairs + i] = {kPairs + i + 1};
  GroupOrder order = OrderOf(edges);
  for (int i = 0; i < kPairs; ++i) (void)Join(order, {i, kPairs + kChain + i});
  EXPECT_LT(order.visits(), 64 * static_cast<int64_t>(edges.size()) + 1200 * int64_t{kPairs} + 2 * 8000);
}

}  // namespace
}  // namespace mge
