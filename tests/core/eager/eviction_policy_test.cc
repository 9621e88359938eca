// SPDX-License-Identifier: Apache-2.0
// The policy of eviction, on states made by hand: a chain a -> b -> c -> d of values, each computed from the one before.
#include "core/eager/eviction_policy.h"

#include <gtest/gtest.h>

#include <cmath>

namespace mge {
namespace {

constexpr int64_t kMiB = 1 << 20;

class Chain : public testing::Test {
 protected:
  Chain() {
    a_.bytes = 1 * kMiB;
    b_.bytes = 2 * kMiB;
    c_.bytes = 4 * kMiB;
    d_.bytes = 8 * kMiB;
    Compute(b_, path_b_, a_);
    Compute(c_, path_c_, b_);
    Compute(d_, path_d_, c_);
  }
  void Compute(PathValue& to, ComputingPath& path, PathValue& from) {
    path.inputs = {&from};
    path.outputs = {&to};
    to.path = &path;
    to.cost = policy_.Advance(from.bytes + to.bytes);
    policy_.Use(from);
    policy_.Use(to);
    policy_.Add(to);
  }

  EvictionPolicy policy_;
  PathValue a_, b_, c_, d_;
  ComputingPath path_b_, path_c_, path_d_;
};

TEST_F(Chain, AdvancesTheClockByTheBytesOfInputsAndOutputs) {
  EXPECT_EQ(b_.cost, 3.0 * kMiB);
  EXPECT_EQ(c_.cost, 6.0 * kMiB);
  EXPECT_EQ(d_.cost, 12.0 * kMiB);
  EXPECT_DOUBLE_EQ(policy_.now(), 21.0 * kMiB / 1e8);
  EXPECT_DOUBLE_EQ(b_.last_used, 9.0 * kMiB / 1e8);  // read by the operator that computed c
}

TEST_F(Chain, ScoresAreThoseOfTheFormula) {
  const double idle_b = policy_.now() - b_.last_used + 1e-3;
  EXPECT_DOUBLE_EQ(policy_.Score(b_), 1e-3 / (2 * idle_b));
  EXPECT_DOUBLE_EQ(policy_.Score(d_), 1e-3 / (8 * 1e-3));
  b_.recomputations = 100;
  EXPECT_DOUBLE_EQ(policy_.Score(b_), 1e-3 * std::pow(1.0001, 100) / (2 * idle_b));
  policy_.Evict(b_);
  // c would need b, which costs 3 MiB; d would not.
  EXPECT_DOUBLE_EQ(policy_.NeighbourCost(c_), 3.0 * kMiB);
  EXPECT_DOUBLE_EQ(policy_.Score(c_), (3.0 * kMiB + 1e-3) / (4 * (policy_.now() - c_.last_used + 1e-3)));
  EXPECT_DOUBLE_EQ(policy_.NeighbourCost(d_), 0);
}

TEST_F(Chain, EvictsTheLowestScoreAndNothingThatIsPinnedSmallOrWithoutAPath) {
  EXPECT_EQ(policy_.candidates(), 3u);
  EXPECT_EQ(policy_.Best(0), &b_);
  b_.pins = 1;
  EXPECT_EQ(policy_.Best(0), &d_);  // as idle as c, and larger
  d_.pins = 1;
  EXPECT_EQ(policy_.Best(0), &c_);
  EXPECT_EQ(policy_.Best(4 * kMiB), nullptr);
  d_.pins = 0;
  EXPECT_EQ(policy_.Best(4 * kMiB), &d_);
  EXPECT_EQ(policy_.Best(8 * kMiB), nullptr);
  b_.pins = 0;
  b_.path = nullptr;
  EXPECT_NE(policy_.Best(0), &b_);
}

TEST_F(Chain, JoinsTheComponentsOfEvictedNeighbours) {
  policy_.Evict(b_);
  policy_.Evict(d_);
  EXPECT_NE(RootOf(b_.component), RootOf(d_.component));
  policy_.Evict(c_);  // its input b is evicted
  EXPECT_EQ(RootOf(b_.component), RootOf(c_.component));
  EXPECT_EQ(RootOf(b_.component)->cost, 9.0 * kMiB);
  EXPECT_EQ(policy_.NeighbourCost(d_), 9.0 * kMiB);
  policy_.Recompute(b_);
  EXPECT_FALSE(b_.evicted);
  EXPECT_EQ(b_.recomputations, 1);
  EXPECT_EQ(policy_.NeighbourCost(d_), 6.0 * kMiB);
  EXPECT_EQ(policy_.candidates(), 0u);
}

TEST_F(Chain, ComponentNeverCountsLessThanTheValueItself) {
  policy_.Evict(c_);
  RootOf(c_.component)->cost = 1;
  EXPECT_EQ(policy_.NeighbourCost(d_), 6.0 * kMiB);
}

TEST_F(Chain, RemovesCandidatesInAnyOrder) {
  policy_.Remove(c_);
  policy_.Remove(c_);
  policy_.Remove(b_);
  EXPECT_EQ(policy_.Best(0), &d_);
  policy_.Add(b_);
  EXPECT_EQ(policy_.candidates(), 2u);
}

}  // namespace
}  // namespace mge
