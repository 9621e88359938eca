// SPDX-License-Identifier: Apache-2.0
#include "core/plan/memory/share.h"

#include <random>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace mge {
namespace {

using ::testing::ElementsAre;

// Returns the buffers of a chain: each is alive until its only reader, the next step, has run.
std::vector<Interval> ChainOf(const std::vector<int64_t>& bytes) {
  std::vector<Interval> chain;
  for (size_t i = 0; i < bytes.size(); ++i) {
    const auto step = static_cast<int32_t>(i);
    chain.push_back({bytes[i], step, i + 1 < bytes.size() ? step + 1 : 1000});
  }
  return chain;
}

// Returns a number for each buffer: equal numbers share memory. Numbers count from 0 in the order of their first use.
std::vector<int> BlocksOf(const Placement& placement) {
  std::vector<std::pair<int32_t, int64_t>> seen;
  std::vector<int> blocks;
  for (size_t i = 0; i < placement.offsets.size(); ++i) {
    const std::pair place(placement.parts[i], placement.offsets[i]);
    const auto at = std::find(seen.begin(), seen.end(), place);
    blocks.push_back(static_cast<int>(at - seen.begin()));
    if (at == seen.end()) seen.push_back(place);
  }
  return blocks;
}

// The examples of NNVM's planner, with 4 bytes per element.
TEST(Share, AChainOfEqualBuffersUsesTwoBlocksInTurn) {
  const std::vector<Interval> chain = ChainOf({4000, 4000, 4000, 4000});
  for (int64_t range : {1, 16}) {
    const Placement p = ShareIntervals(chain, range);
    EXPECT_THAT(BlocksOf(p), ElementsAre(0, 1, 0, 1)) << range;
    EXPECT_EQ(p.total, 8000) << range;
  }
}

TEST(Share, TheRangeZeroSharesNothing) {
  const Placement p = ShareIntervals(ChainOf({4000, 4000, 4000, 4000}), 0);
  EXPECT_THAT(BlocksOf(p), ElementsAre(0, 1, 2, 3));
  EXPECT_EQ(p.total, 16000);
}

TEST(Share, AChainInPlaceIsOneBufferForEveryRange) {
  for (int64_t range : {0, 1, 16}) EXPECT_EQ(ShareIntervals(std::vector<Interval>{{4000, 0, 1000}}, range).total, 4000);
}

TEST(Share, ALargerRangeSharesBuffersOfMoreDifferentSizes) {
  const std::vector<Interval> chain = ChainOf({16000, 400, 4000, 200, 12000});
  EXPECT_EQ(ShareIntervals(chain, 0).total, 32600);
  EXPECT_EQ(ShareIntervals(chain, 1).total, 32600);
  const Placement two = ShareIntervals(chain, 2);
  EXPECT_THAT(BlocksOf(two), ElementsAre(0, 1, 2, 1, 0));
  EXPECT_EQ(two.total, 20400);
  for (int64_t range : {4, 16, 1000}) {
    const Placement p = ShareIntervals(chain, range);
    EXPECT_THAT(BlocksOf(p), ElementsAre(0, 1, 0, 1, 0)) << range;
    EXPECT_EQ(p.total, 16400) << range;
  }
}

TEST(Share, BlocksArePassedOnWithinOneLaneOnly) {
  // Three chains of three operators and one that joins them. The lanes are those of color_paths_test.cc.
  const std::vector<std::vector<int32_t>> lanes = {
      {0, 0, 0, 0, 0, 0, 0, 0, 0, 0}, {1, 1, 1, 1, 1, 1, 0, 0, 0, 0}, {2, 2, 2, 1, 1, 1, 0, 0, 0, 0}};
  const int64_t blocks[] = {4, 5, 6};
  for (size_t k = 0; k < lanes.size(); ++k) {
    std::vector<Interval> intervals;
    for (int32_t n = 0; n < 10; ++n) {
      const int32_t last = n == 9 ? 1000 : n % 3 == 2 ? 9 : n + 1;
      intervals.push_back({4000, n, last, lanes[k][static_cast<size_t>(n)]});
    }
    EXPECT_EQ(ShareIntervals(intervals, 16).total, 4000 * blocks[k]) << k + 1 << " lanes";
  }
}

// A small value takes the large free block if the range allows it. Another large one then needs a new block.
std::vector<Interval> BuffersThatSufferFromALargeRange() { return {{1600, 0, 0}, {100, 1, 3}, {1600, 2, 3}}; }

TEST(Share, TheSweepTakesTheSmallestPlanAndAmongEqualOnesTheSmallestRange) {
  const std::vector<Interval> intervals = BuffersThatSufferFromALargeRange();
  EXPECT_EQ(ShareIntervals(intervals, 16).total, 3200);
  const Placement best = SweepMatchRanges(intervals, 16);
  EXPECT_EQ(best.total, 1700);
  EXPECT_EQ(best.match_range, 1);
}

TEST(Share, TheSweepIsTheMinimumOverAllRanges) {
  for (uint32_t seed = 0; seed < 200; ++seed) {
    std::mt19937 random(seed);
    std::vector<Interval> intervals(1 + random() % 30);
    for (Interval& x : intervals) {
      x.first = static_cast<int32_t>(random() % 30);
      x = {static_cast<int64_t>(64 * (random() % 100)), x.first, x.first + static_cast<int32_t>(random() % 8)};
    }
    int64_t least = INT64_MAX;
    for (int64_t range = 1; range <= 16; ++range) least = std::min(least, ShareIntervals(intervals, range).total);
    EXPECT_EQ(SweepMatchRanges(intervals, 16).total, least) << seed;
    const Placement both = PlaceSmallest(intervals, {});
    EXPECT_EQ(both.total, std::min(least, PlaceIntervals(intervals).total)) << seed;
  }
}

TEST(Share, BuffersThatAreAliveTogetherNeverOverlapAndPartsKeepTheirLimit) {
  for (uint32_t seed = 0; seed < 300; ++seed) {
    std::mt19937 random(seed);
    std::vector<Interval> intervals(random() % 40);
    for (Interval& x : intervals) {
      x.first = static_cast<int32_t>(random() % 30);
      x = {static_cast<int64_t>(64 * (random() % 20)), x.first, x.first + static_cast<int32_t>(random() % 8),
           static_cast<int32_t>(random() % 2)};
    }
    const int64_t limit = random() % 2 ? INT64_MAX : 64 * 32;
    const Placement p = ShareIntervals(intervals, static_cast<int64_t>(random() % 5), limit);
    int64_t total = 0;
    for (int64_t bytes : p.part_bytes) {
      EXPECT_LE(bytes, limit);
      total += bytes;
    }
    EXPECT_EQ(p.total, total);
    for (size_t a = 0; a < intervals.size(); ++a) {
      ASSERT_LE(p.offsets[a] + intervals[a].bytes, p.part_bytes[static_cast<size_t>(p.parts[a])]);
      for (size_t b = a + 1; b < intervals.size(); ++b) {
        const bool together = intervals[a].first <= intervals[b].last && intervals[b].first <= intervals[a].last;
        const bool overlap = p.parts[a] == p.parts[b] && p.offsets[a] < p.offsets[b] + intervals[b].bytes &&
                             p.offsets[b] < p.offsets[a] + intervals[a].bytes;
        ASSERT_FALSE(together && overlap) << seed;
      }
    }
  }
}

TEST(Share, ABindingRangeKeepsBuffersOfOtherSizesApartInTheOffsetPlannerToo) {
  const std::vector<Interval> chain = ChainOf({16000, 400, 4000, 200, 12000});
  EXPECT_EQ(PlaceSmallest(chain, {}).total, 16400);
  EXPECT_EQ(PlaceSmallest(chain, {16, true}).total, 16400);
  EXPECT_EQ(PlaceSmallest(chain, {0, true}).total, 32600);
  for (int64_t range : {1, 2, 4}) {
    const Placement p = PlaceIntervals(chain, INT64_MAX, range);
    for (size_t a = 0; a < chain.size(); ++a) {
      for (size_t b = a + 1; b < chain.size(); ++b) {
        const auto [small, large] = std::minmax(chain[a].bytes, chain[b].bytes);
        const bool overlap = p.offsets[a] < p.offsets[b] + chain[b].bytes && p.offsets[b] < p.offsets[a] + chain[a].bytes;
        EXPECT_TRUE(!overlap || large <= small * range) << range << ": " << a << " and " << b;
      }
    }
  }
}

}  // namespace
}  // namespace mge
