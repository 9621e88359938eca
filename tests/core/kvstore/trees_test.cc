// SPDX-License-Identifier: Apache-2.0
// Reduction trees: the golden trees of the search, and what holds for every tree.
#include "core/kvstore/trees.h"

#include <gmock/gmock.h>

#include <numeric>
#include <set>

namespace mge {
namespace {

using testing::ElementsAre;
using testing::FloatEq;
using testing::HasSubstr;

LinkMatrix Of(size_t devices, std::vector<float> weights) {
  LinkMatrix m(devices);
  m.weights = std::move(weights);
  return m;
}
LinkMatrix Full(size_t devices, float weight) {
  LinkMatrix m(devices);
  for (size_t i = 0; i < devices; ++i) {
    for (size_t j = 0; j < devices; ++j) m.At(i, j) = i == j ? 0 : weight;
  }
  return m;
}
// configs/links/dgx1v.csv
LinkMatrix Dgx1v() {
  return Of(8, {0, 2, 2, 3, 3, 1, 1, 1, 2, 0, 3, 2, 1, 3, 1, 1, 2, 3, 0, 3, 1, 1, 2, 1, 3, 2, 3, 0, 1, 1, 1, 2,
                3, 1, 1, 1, 0, 2, 2, 3, 1, 3, 1, 1, 2, 0, 3, 2, 1, 1, 2, 1, 2, 3, 0, 3, 1, 1, 1, 2, 3, 2, 3, 0});
}

ReductionTrees Build(const LinkMatrix& weights, const TreeOptions& options) {
  auto trees = BuildTrees(weights, options);
  EXPECT_TRUE(trees.ok()) << trees.status();
  return trees.ok() ? *std::move(trees) : ReductionTrees();
}

std::vector<std::string> LeavesOf(const ReductionTrees& all) {
  std::vector<std::string> out;
  for (const ReductionTree& tree : all.trees) {
    std::string text;
    for (int device : tree.level(tree.depth())) text += (text.empty() ? "" : " ") + std::to_string(device);
    out.push_back(text);
  }
  return out;
}
std::vector<float> WeightsOf(const ReductionTrees& all) {
  std::vector<float> out;
  for (const ReductionTree& tree : all.trees) out.push_back(tree.weight);
  return out;
}

TEST(SearchedTrees, OfFourConnectedDevicesAreTheGoldenOnes) {
  const ReductionTrees all = Build(Full(4, 2), {.backtrack = true});
  EXPECT_THAT(LeavesOf(all), ElementsAre("0 1 2 3", "1 2 3 0", "2 0 1 3", "3 2 0 1"));
  EXPECT_THAT(WeightsOf(all), ElementsAre(FloatEq(6), FloatEq(6), FloatEq(4.2f), FloatEq(4.2f)));
  EXPECT_THAT(all.trees[0].topology, ElementsAre(0, 0, 2, 0, 1, 2, 3));
  EXPECT_THAT(all.trees[0].starts, ElementsAre(0, 1, 3, 7));
}

TEST(SearchedTrees, WithoutAPenaltyAreTheGoldenOnes) {
  const ReductionTrees all = Build(Full(4, 2), {.backtrack = true, .penalty = 1});
  EXPECT_THAT(LeavesOf(all), ElementsAre("0 1 2 3", "1 0 2 3", "2 0 1 3", "3 0 1 2"));
  EXPECT_THAT(WeightsOf(all), ElementsAre(FloatEq(6), FloatEq(6), FloatEq(6), FloatEq(6)));
}

TEST(SearchedTrees, OfUnequalLinksAreTheGoldenOnes) {
  const LinkMatrix weights = Of(4, {0, 2, 2, 3, 2, 0, 3, 2, 2, 3, 0, 2, 3, 2, 2, 0});
  const ReductionTrees all = Build(weights, {.backtrack = true});
  EXPECT_THAT(LeavesOf(all), ElementsAre("0 3 1 2", "1 2 3 0", "2 0 3 1", "3 0 2 1"));
  EXPECT_THAT(WeightsOf(all), ElementsAre(FloatEq(8), FloatEq(6.2f), FloatEq(5.4f), FloatEq(4.34f)));
}

TEST(SearchedTrees, OfThreeDevicesAreTheGoldenOnes) {
  EXPECT_THAT(LeavesOf(Build(Full(3, 2), {.backtrack = true})), ElementsAre("0 0 1 2", "1 1 0 2", "2 0 1 1"));
}

TEST(SearchedTrees, NeedLinksOfSomeWeight) {
  const auto trees = BuildTrees(Full(4, 2), {.backtrack = true, .penalty = 0});
  ASSERT_FALSE(trees.ok());
  EXPECT_THAT(std::string(trees.status().message()), HasSubstr("no tree of links"));
}

// Sums along the edges give the sum of all devices at the root, and the way back reaches all.
void ExpectTree(const ReductionTree& tree, int root, const LinkMatrix& weights) {
  SCOPED_TRACE(TreeText(tree));
  const auto n = static_cast<int>(weights.devices);
  ASSERT_EQ(tree.topology[0], root);
  EXPECT_GE(1 << tree.depth(), n);
  EXPECT_TRUE(tree.depth() == 0 || (1 << (tree.depth() - 1)) < n);
  for (int i = 1; i <= tree.depth(); ++i) {
    for (size_t k = 0; k < tree.level(i - 1).size(); ++k) {
      const int parent = tree.level(i)[2 * k], child = tree.level(i)[2 * k + 1];
      EXPECT_EQ(parent, tree.level(i - 1)[k]);
      EXPECT_TRUE(parent == child || weights.At(static_cast<size_t>(parent), static_cast<size_t>(child)) > 0);
    }
  }
  const auto leaves = tree.level(tree.depth());
  EXPECT_EQ(std::set<int>(leaves.begin(), leaves.end()).size(), weights.devices);
  const std::vector<TreeEdge> edges = EdgesOf(tree);
  EXPECT_EQ(edges.size(), weights.devices - 1);
  std::vector<int> sums(weights.devices);
  for (int d = 0; d < n; ++d) sums[static_cast<size_t>(d)] = 1 << d;
  for (auto edge = edges.rbegin(); edge != edges.rend(); ++edge) {
    sums[static_cast<size_t>(edge->parent)] += std::exchange(sums[static_cast<size_t>(edge->child)], 0);
  }
  EXPECT_EQ(sums[static_cast<size_t>(root)], (1 << n) - 1);
}

TEST(Trees, OfAnyNumberOfDevicesReachAllOverLinks) {
  for (size_t devices = 1; devices <= 8; ++devices) {
    for (const bool backtrack : {false, true}) {
      const LinkMatrix weights = Full(devices, 2);
      const ReductionTrees all = Build(weights, {.backtrack = backtrack});
      ASSERT_EQ(all.trees.size(), devices);
      for (size_t root = 0; root < devices; ++root) ExpectTree(all.trees[root], static_cast<int>(root), weights);
    }
  }
}

TEST(BisectedTrees, OfADgx1vUseNoLinksThroughTheHost) {
  const LinkMatrix weights = TreeWeights(Dgx1v());
  const ReductionTrees all = Build(weights, {});
  ASSERT_EQ(all.trees.size(), 8u);
  for (int root = 0; root < 8; ++root) ExpectTree(all.trees[static_cast<size_t>(root)], root, weights);
  const ReductionTrees best = Build(weights, {.backtrack = true});
  EXPECT_GE(all.trees[0].weight, 0.8f * best.trees[0].weight);
}

TEST(BisectedTrees, AreTheSameEveryTime) {
  EXPECT_EQ(LeavesOf(Build(TreeWeights(Dgx1v()), {})), LeavesOf(Build(TreeWeights(Dgx1v()), {})));
}

// Two pairs with direct links, and the way through the host between them.
TEST(TreeWeights, OfLinksThroughTheHostAreSmallUnlessDirectLinksConnectAll) {
  const LinkMatrix pairs = TreeWeights(Of(4, {0, 2, 1, 1, 2, 0, 1, 1, 1, 1, 0, 3, 1, 1, 3, 0}));
  EXPECT_THAT(pairs.weights, ElementsAre(0, 2, .25f, .25f, 2, 0, .25f, .25f, .25f, .25f, 0, 3, .25f, .25f, 3, 0));
  const LinkMatrix chain = TreeWeights(Of(3, {0, 2, 1, 2, 0, 3, 1, 3, 0}));
  EXPECT_THAT(chain.weights, ElementsAre(0, 2, 0, 2, 0, 3, 0, 3, 0));
}

TEST(Trees, CrossTheHostAsLittleAsPossible) {
  const LinkMatrix pairs = TreeWeights(Of(4, {0, 2, 1, 1, 2, 0, 1, 1, 1, 1, 0, 3, 1, 1, 3, 0}));
  for (const bool backtrack : {false, true}) {
    int crossings = 0;
    for (const TreeEdge& edge : EdgesOf(Build(pairs, {.backtrack = backtrack}).trees[0])) {
      crossings += edge.parent / 2 != edge.child / 2;
    }
    EXPECT_EQ(crossings, 1) << backtrack;
  }
}

TEST(LinkUses, CountTheTreesOfEachLink) {
  const ReductionTrees all = Build(Full(4, 2), {.backtrack = true});
  const LinkMatrix uses = LinkUses(all.trees, 4);
  EXPECT_EQ(std::accumulate(uses.weights.begin(), uses.weights.end(), 0.f), 2 * 4 * 3);  // 3 edges per tree, both ways
  EXPECT_EQ(uses.At(0, 1), uses.At(1, 0));
}

}  // namespace
}  // namespace mge
