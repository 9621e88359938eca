// SPDX-License-Identifier: Apache-2.0
// The simulated cluster: sums whose time is known, and the choice that core/kvstore/sum_path.h makes for real processes.
#include "tests/core/kvstore/simulated/cluster.h"

#include <gmock/gmock.h>

namespace mge::simulated {
namespace {

// Each side of a message needs a core for 1 us, and for .5 ns per byte within a host.
constexpr TransportCosts kRound = {{10e-6, 1e-6, .5e-9}, {100e-6, 1e-6, 1e-9}, 0};

TEST(SimulatedCluster, SumsInTheTimeOfItsRounds) {
  const Cluster two = {{2, 2}, 2, kRound};
  EXPECT_NEAR(TimeOfSum(two, Way::kWhole, 1000), 13e-6, 1e-9);        // each rank sends and receives, then 10 us
  EXPECT_NEAR(TimeOfSum(two, Way::kParts, 1000), 2 * 12.5e-6, 1e-9);  // two rounds with half of the bytes
  EXPECT_NEAR(TimeOfSum(two, Way::kTree, 1000), 2 * 11.5e-6, 1e-9);   // two rounds with one message each
  const Cluster one_core = {{2, 2}, 1, kRound};
  EXPECT_NEAR(TimeOfSum(one_core, Way::kWhole, 1000), 16e-6, 1e-9);
  const Cluster apart = {{2, 1}, 1, kRound};
  EXPECT_NEAR(TimeOfSum(apart, Way::kWhole, 1000), 102e-6, 1e-9);  // the adapters move bytes, meanwhile
}

TEST(SimulatedCluster, NeedsAsMuchBandwidthForARingAsForParts) {
  for (const uint32_t ranks : {2u, 4u, 8u}) {
    const Cluster cluster = {{ranks, 1}, 1, {kRound.local, {0, 0, 1e-9}, 0}};
    const double ideal = 2.0 * (ranks - 1) / ranks * 1e8 * 1e-9;
    EXPECT_NEAR(TimeOfSum(cluster, Way::kRing, 1e8), ideal, ideal / 100);
    EXPECT_NEAR(TimeOfSum(cluster, Way::kParts, 1e8), ideal, ideal / 100);
    EXPECT_GE(TimeOfSum(cluster, Way::kWhole, 1e8), ideal * ranks / 2.1);
  }
}

TEST(SimulatedCluster, CrossesTheNetworkLeastIfHostsSumFirst) {
  const Cluster cluster = {{64, 8}, 8};
  EXPECT_LT(TimeOfSum(cluster, Way::kHosts, 1e8), TimeOfSum(cluster, Way::kParts, 1e8) / 2);
}

TEST(Efficiency, IsFullIfSumsAreHiddenExceptForTheLast) {
  const double buckets[] = {1, 1};
  EXPECT_DOUBLE_EQ(Efficiency(1, buckets, std::vector<double>{0, 0}), 1);
  EXPECT_DOUBLE_EQ(Efficiency(1, buckets, std::vector<double>{1, 1}), 3. / 4);
  EXPECT_DOUBLE_EQ(Efficiency(1, buckets, std::vector<double>{3, 1}), 3. / 6);
}

// The way that processes choose is never far from the fastest one of those that they have.
TEST(SumPath, IsNearlyTheFastestInTheSimulation) {
  for (const GroupShape& group : {GroupShape{2, 2}, {4, 4}, {8, 8}, {2, 1}, {16, 1}, {16, 4}, {64, 8}, {256, 8}}) {
    const Cluster cluster = {group, group.ranks_per_host};
    for (double bytes = 4; bytes < 2e8; bytes *= 8) {
      const SumPath chosen = FastestSumPath(group, bytes);
      const double time = TimeOfSum(cluster, WayOf(chosen), bytes);
      for (const SumPath path : {SumPath::kWhole, SumPath::kParts, SumPath::kHosts}) {
        if (path == SumPath::kHosts && (group.hosts() == 1 || group.ranks_per_host == 1)) continue;
        EXPECT_LE(time, 1.5 * TimeOfSum(cluster, WayOf(path), bytes))
            << group.ranks << " ranks, " << group.ranks_per_host << " per host, " << bytes << " bytes: " << Name(chosen)
            << " is slower than " << Name(path);
      }
    }
  }
}

TEST(SumPath, IsOneRoundForSmallArraysAndPartsForBigOnes) {
  for (const uint32_t ranks : {2u, 4u, 8u}) {
    EXPECT_EQ(FastestSumPath({ranks, ranks}, 64), SumPath::kWhole);
    EXPECT_EQ(FastestSumPath({ranks, ranks}, 1e8), SumPath::kParts);
  }
  EXPECT_EQ(FastestSumPath({64, 8}, 1e8), SumPath::kHosts);
  EXPECT_EQ(FastestSumPath({64, 1}, 1e8), SumPath::kParts);  // one process on each host
}

}  // namespace
}  // namespace mge::simulated
