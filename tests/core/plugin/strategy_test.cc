// SPDX-License-Identifier: Apache-2.0
// The order in which the host's strategies rank candidates.
#include "core/plugin/strategy.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "core/base/errors.h"

namespace mge {
namespace {

using testing::ElementsAre;

struct Offered {
  std::string id;
  int32_t rank;
  double cost;
  uint64_t attributes = MGE_KERNEL_DETERMINISTIC;
};

// Returns the ids of the candidates, best first.
std::vector<std::string> Order(int32_t mode, const std::vector<Offered>& list, const std::vector<double>& measured = {}) {
  std::vector<mge_candidate> candidates(list.size());
  std::vector<const mge_candidate*> pointers;
  for (size_t i = 0; i < list.size(); ++i) {
    candidates[i].struct_size = sizeof(mge_candidate);
    candidates[i].id = {list[i].id.data(), list[i].id.size()};
    candidates[i].rank = list[i].rank;
    candidates[i].cost_us = list[i].cost;
    candidates[i].attributes = list[i].attributes;
    pointers.push_back(&candidates[i]);
  }
  mge_choice choice = {
      sizeof(choice), mode, nullptr, pointers.data(), pointers.size(), measured.empty() ? nullptr : measured.data()};
  std::vector<uint32_t> order(list.size());
  EXPECT_TRUE(OrderByHost(choice, order.data()).ok());
  std::vector<std::string> ids;
  for (uint32_t i : order) ids.push_back(list[i].id);
  return ids;
}

const std::vector<Offered> kList = {
    {"slow", 0, 9}, {"fast", 5, 1}, {"unknown", 1, -1}, {"reference", 0, 0.1, MGE_KERNEL_REFERENCE}};

TEST(OrderByHost, HeuristicOrdersByEstimateWithTheReferenceLast) {
  EXPECT_THAT(Order(MGE_SELECT_HEURISTIC, kList), ElementsAre("unknown", "fast", "slow", "reference"));
}

TEST(OrderByHost, CandidatesWithoutEstimateAreOrderedByRank) {
  EXPECT_THAT(Order(MGE_SELECT_HEURISTIC, {{"third", 2, -1}, {"first", 0, -1}, {"second", 1, -7}}),
              ElementsAre("first", "second", "third"));
}

// The kernels of a library, in its order, and two own kernels with estimates.
TEST(OrderByHost, RankComparesCandidatesWithAndWithoutEstimate) {
  auto order = [](int32_t own_rank) {
    return Order(MGE_SELECT_HEURISTIC, {{"lib.0", 0, -1}, {"lib.1", 1, -1}, {"own", own_rank, 5}, {"own.2", own_rank, 9}});
  };
  EXPECT_THAT(order(0), ElementsAre("own", "own.2", "lib.0", "lib.1"));
  EXPECT_THAT(order(1), ElementsAre("lib.0", "own", "own.2", "lib.1"));
  EXPECT_THAT(order(2), ElementsAre("lib.0", "lib.1", "own", "own.2"));
}

TEST(OrderByHost, TheOrderOfEstimatesIsKeptWhateverTheRanks) {
  EXPECT_THAT(Order(MGE_SELECT_HEURISTIC, {{"fast", 5, 10}, {"slow", 1, 20}, {"unknown", 3, -1}}),
              ElementsAre("unknown", "fast", "slow"));
  EXPECT_THAT(Order(MGE_SELECT_HEURISTIC, {{"fast", 1, 10}, {"slow", 5, 20}, {"unknown", 3, -1}}),
              ElementsAre("fast", "unknown", "slow"));
}

TEST(OrderByHost, ProfileOrdersByMeasuredTime) {
  EXPECT_THAT(Order(MGE_SELECT_PROFILE, kList, {2, 3, 1, 4}), ElementsAre("unknown", "slow", "fast", "reference"));
  EXPECT_THAT(Order(MGE_SELECT_PROFILE, kList, {-1, 3, -1, 4}), ElementsAre("fast", "slow", "unknown", "reference"));
}

TEST(OrderByHost, ReproducibleIgnoresTimes) {
  EXPECT_THAT(Order(MGE_SELECT_REPRODUCIBLE, kList), ElementsAre("slow", "unknown", "fast", "reference"));
  std::vector<Offered> other = kList;
  for (Offered& o : other) o.cost = 10 - o.cost;
  EXPECT_EQ(Order(MGE_SELECT_REPRODUCIBLE, other), Order(MGE_SELECT_REPRODUCIBLE, kList));
}

TEST(OrderByHost, RefusesAnUnknownModeAndMissingTimes) {
  uint32_t order = 0;
  for (int32_t mode : {77, int32_t{MGE_SELECT_PROFILE}}) {
    mge_choice choice = {sizeof(choice), mode, nullptr, nullptr, 0, nullptr};
    EXPECT_EQ(ErrorId(OrderByHost(choice, &order)), errors::kApiMisuse.id) << mode;
  }
}

}  // namespace
}  // namespace mge
