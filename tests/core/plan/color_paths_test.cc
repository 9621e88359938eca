// SPDX-License-Identifier: Apache-2.0
#include "core/plan/color_paths.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace mge {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;

// A variable, three chains of three operators each, and an operator that joins them.
std::vector<std::vector<int32_t>> ThreeChains() { return {{}, {0}, {1}, {2}, {0}, {4}, {5}, {0}, {7}, {8}, {3, 6, 9}}; }
std::vector<int64_t> Importance() { return {0, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1}; }

TEST(ColorPaths, OneColourIsForAllNodes) { EXPECT_THAT(ColorPaths(ThreeChains(), Importance(), 1), Each(0)); }

TEST(ColorPaths, TheLongestPathGetsTheFirstColourAndTheRestTheLast) {
  EXPECT_THAT(ColorPaths(ThreeChains(), Importance(), 2), ElementsAre(1, 1, 1, 1, 1, 1, 1, 0, 0, 0, 0));
  EXPECT_THAT(ColorPaths(ThreeChains(), Importance(), 3), ElementsAre(2, 2, 2, 2, 1, 1, 1, 0, 0, 0, 0));
}

TEST(ColorPaths, MoreColoursThanPathsAreNotUsed) {
  EXPECT_THAT(ColorPaths(ThreeChains(), Importance(), 9), ElementsAre(3, 2, 2, 2, 1, 1, 1, 0, 0, 0, 0));
}

}  // namespace
}  // namespace mge
