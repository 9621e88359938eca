// SPDX-License-Identifier: Apache-2.0
#include "core/base/nearest.h"

#include "gtest/gtest.h"

namespace mge {
namespace {

TEST(Nearest, CountsInsertionsDeletionsReplacementsAndSwaps) {
  EXPECT_EQ(EditDistance("abc", "abc", 5), 0);
  EXPECT_EQ(EditDistance("abc", "ABC", 5), 0);
  EXPECT_EQ(EditDistance("abc", "ac", 5), 1);
  EXPECT_EQ(EditDistance("abc", "abxc", 5), 1);
  EXPECT_EQ(EditDistance("abc", "axc", 5), 1);
  EXPECT_EQ(EditDistance("default", "defualt", 5), 1);
  EXPECT_EQ(EditDistance("", "abc", 5), 3);
  EXPECT_EQ(EditDistance("kitten", "sitting", 5), 3);
}

TEST(Nearest, StopsBeyondItsLimit) {
  EXPECT_EQ(EditDistance("abcdef", "ghijkl", 2), 3);
  EXPECT_EQ(EditDistance(std::string(100'000, 'a'), "a", 3), 4);
}

TEST(Nearest, FindsTheNearestName) {
  std::vector<std::string> names = {"threads", "engine.type", "seed"};
  EXPECT_EQ(Nearest("threds", names), "threads");
  EXPECT_EQ(Nearest("engine.tpye", names), "engine.type");
  EXPECT_EQ(Nearest("Seed", names), "seed");
}

TEST(Nearest, ReturnsNothingIfNoNameIsNear) {
  std::vector<std::string> names = {"threads", "seed"};
  EXPECT_EQ(Nearest("memory", names), "");
  EXPECT_EQ(Nearest("", names), "");
  EXPECT_EQ(Nearest("ab", names), "");
  EXPECT_EQ(Nearest("x", std::vector<std::string>()), "");
  EXPECT_EQ(Nearest(std::string(1 << 20, 's'), names), "");
}

TEST(Nearest, WritesASuggestionAsASentence) {
  EXPECT_EQ(DidYouMean("seed"), " Did you mean \"seed\"?");
  EXPECT_EQ(DidYouMean(""), "");
  EXPECT_EQ(DidYouMeanOr("seed", "use one of: seed, threads"), "did you mean 'seed'?");
  EXPECT_EQ(DidYouMeanOr("", "use one of: seed, threads"), "use one of: seed, threads");
}

}  // namespace
}  // namespace mge
