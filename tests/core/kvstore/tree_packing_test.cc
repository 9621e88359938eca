// SPDX-License-Identifier: Apache-2.0
// Trees that share links: every subset of the devices of a DGX-1V, compared with the highest rate that the links allow.
#include "core/kvstore/tree_packing.h"

#include <gmock/gmock.h>

#include <functional>
#include <limits>

namespace mge {
namespace {

// Link classes of configs/links/dgx1v.csv.
constexpr float kDgx1v[8][8] = {{0, 2, 2, 3, 3, 1, 1, 1}, {2, 0, 3, 2, 1, 3, 1, 1}, {2, 3, 0, 3, 1, 1, 2, 1},
                                {3, 2, 3, 0, 1, 1, 1, 2}, {3, 1, 1, 1, 0, 2, 2, 3}, {1, 3, 1, 1, 2, 0, 3, 2},
                                {1, 1, 2, 1, 2, 3, 0, 3}, {1, 1, 1, 2, 3, 2, 3, 0}};
// The same machine, as CUDA 9.2 reports it.
constexpr float kMisdetected[8][8] = {{0, 2, 2, 1, 1, 1, 1, 1}, {2, 0, 1, 2, 1, 1, 1, 1}, {2, 1, 0, 1, 1, 1, 2, 1},
                                      {1, 2, 1, 0, 1, 1, 1, 2}, {1, 1, 1, 1, 0, 2, 2, 1}, {1, 1, 1, 1, 2, 0, 1, 2},
                                      {1, 1, 2, 1, 2, 1, 0, 1}, {1, 1, 1, 2, 1, 2, 1, 0}};

LinkMatrix Subset(const float (&all)[8][8], unsigned mask) {
  std::vector<size_t> devices;
  for (size_t i = 0; i < 8; ++i) {
    if (mask >> i & 1) devices.push_back(i);
  }
  LinkMatrix out(devices.size());
  for (size_t a = 0; a < devices.size(); ++a) {
    for (size_t b = 0; b < devices.size(); ++b) out.At(a, b) = all[devices[a]][devices[b]];
  }
  return out;
}
LinkMatrix Complete(size_t devices, float link_class) {
  LinkMatrix out(devices);
  for (size_t a = 0; a < devices; ++a) {
    for (size_t b = 0; b < devices; ++b) out.At(a, b) = a == b ? 0 : link_class;
  }
  return out;
}

// Returns the highest rate, by all divisions of the devices into groups.
double HighestRate(const LinkMatrix& capacities) {
  const size_t n = capacities.devices;
  std::vector<size_t> group(n, 0);
  double best = std::numeric_limits<double>::infinity();
  const std::function<void(size_t, size_t)> divide = [&](size_t device, size_t groups) {
    if (device < n) {
      for (size_t g = 0; g <= groups; ++g) {
        group[device] = g;
        divide(device + 1, std::max(groups, g + 1));
      }
      return;
    }
    if (groups < 2) return;
    double capacity = 0;
    for (size_t a = 0; a < n; ++a) {
      for (size_t b = a + 1; b < n; ++b) capacity += group[a] == group[b] ? 0 : double{capacities.At(a, b)};
    }
    best = std::min(best, capacity / static_cast<double>(groups - 1));
  };
  divide(0, 0);
  return best;
}

// Returns the rate at which the trees sum: the fullest link limits it.
double RateOf(const TreePacking& packing, const LinkMatrix& capacities) {
  const LinkMatrix loads = LinkLoads(packing, capacities.devices);
  double rate = std::numeric_limits<double>::infinity();
  for (size_t i = 0; i < loads.weights.size(); ++i) {
    if (loads.weights[i] == 0) continue;
    rate = std::min(rate, double{capacities.weights[i]} / double{loads.weights[i]} * static_cast<double>(packing.shares()));
  }
  return rate;
}

// Each tree reaches all devices from its root over links, level by level.
void ExpectSpanningTrees(const TreePacking& packing, const LinkMatrix& capacities) {
  for (const PackedTree& tree : packing.trees) {
    SCOPED_TRACE(TreeText(tree));
    EXPECT_GE(tree.share, 1);
    ASSERT_EQ(tree.edges.size(), capacities.devices - 1);
    std::vector<int> level(capacities.devices, -1);
    level[static_cast<size_t>(tree.edges[0].parent)] = 0;
    for (const TreeEdge& edge : tree.edges) {
      const auto parent = static_cast<size_t>(edge.parent), child = static_cast<size_t>(edge.child);
      EXPECT_GT(capacities.At(parent, child), 0);
      EXPECT_EQ(level[child], -1);
      EXPECT_EQ(edge.level, level[parent] + 1);
      level[child] = edge.level;
    }
    EXPECT_LE(packing.trees[0].depth(), tree.depth());
  }
}

class EverySubset : public testing::TestWithParam<const float (*)[8][8]>{};

TEST_P(EverySubset, IsSummedAtTheHighestRateOfItsLinks) {
  for (unsigned mask = 1; mask < 256; ++mask) {
    const LinkMatrix classes = Subset(*GetParam(), mask);
    if (classes.devices < 2) continue;
    SCOPED_TRACE(mask);
    const LinkMatrix capacities = LinkCapacities(classes);
    const TreePacking packing = PackTrees(capacities);
    ASSERT_FALSE(packing.trees.empty());
    ExpectSpanningTrees(packing, capacities);
    const double rate = RateOf(packing, capacities);
    EXPECT_NEAR(rate, packing.rate, 1e-6 * rate);
    EXPECT_GE(rate, 0.99 * HighestRate(capacities));
    EXPECT_LE(packing.trees.size(), 24u);
  }
}
INSTANTIATE_TEST_SUITE_P(Machines, EverySubset, testing::Values(&kDgx1v, &kMisdetected));

TEST(TreePacking, OfAllDevicesOfADgx1vIsFasterThanTheBalancedTrees) {
  const LinkMatrix classes = Subset(kDgx1v, 255), capacities = LinkCapacities(classes);
  EXPECT_NEAR(PackTrees(capacities).rate, 24.0 / 7, 1e-9);  // 24 links, of which each tree needs 7
  for (const bool backtrack : {false, true}) {
    const auto balanced = BuildTrees(TreeWeights(classes), {.backtrack = backtrack});
    ASSERT_TRUE(balanced.ok()) << balanced.status();
    TreePacking packing;
    for (const ReductionTree& tree : balanced->trees) packing.trees.push_back({EdgesOf(tree)});
    EXPECT_LE(RateOf(packing, capacities), 0.6 * 24 / 7);
  }
}

TEST(TreePacking, OfEqualLinksUsesThemAll) {
  for (size_t devices = 2; devices <= 16; ++devices) {
    const LinkMatrix capacities = LinkCapacities(Complete(devices, 2));
    const TreePacking packing = PackTrees(capacities);
    ExpectSpanningTrees(packing, capacities);
    EXPECT_GE(RateOf(packing, capacities), 0.99 * static_cast<double>(devices) / 2);
  }
}

TEST(TreePacking, CrossesTheHostOncePerTree) {
  LinkMatrix classes = Complete(8, 1);
  for (size_t a = 0; a < 8; ++a) {
    for (size_t b = 0; b < 8; ++b) {
      if (a != b && a / 4 == b / 4) classes.At(a, b) = a / 2 == b / 2 ? 4 : 2;
    }
  }
  for (const PackedTree& tree : PackTrees(LinkCapacities(classes)).trees) {
    int crossings = 0;
    for (const TreeEdge& edge : tree.edges) crossings += edge.parent / 4 != edge.child / 4;
    EXPECT_EQ(crossings, 1);
  }
}

TEST(TreePacking, OfOneDeviceHasNoLinks) {
  const TreePacking packing = PackTrees(LinkMatrix(1));
  ASSERT_EQ(packing.trees.size(), 1u);
  EXPECT_TRUE(packing.trees[0].edges.empty());
  EXPECT_EQ(packing.trees[0].depth(), 0);
}

// Two pairs of directly linked devices, without other direct links.
TEST(LinkCapacities, OfDirectLinksAreFarAboveThoseThroughTheHost) {
  LinkMatrix classes = Complete(4, 1);
  classes.At(0, 1) = classes.At(1, 0) = 2;
  classes.At(2, 3) = classes.At(3, 2) = 3;
  EXPECT_THAT(LinkCapacities(classes).weights, testing::ElementsAre(0, 4, 1, 1, 4, 0, 1, 1, 1, 1, 0, 8, 1, 1, 8, 0));
}

}  // namespace
}  // namespace mge
