// SPDX-License-Identifier: Apache-2.0
#include "core/plan/memory/place.h"

#include <random>

#include "gtest/gtest.h"

namespace mge {
namespace {

int64_t MostBytesAtOnce(const std::vector<Interval>& intervals, int32_t steps) {
  int64_t most = 0;
  for (int32_t step = 0; step < steps; ++step) {
    int64_t now = 0;
    for (const Interval& i : intervals) now += i.first <= step && step <= i.last ? i.bytes : 0;
    most = std::max(most, now);
  }
  return most;
}

void ExpectNoOverlap(const std::vector<Interval>& intervals, const Placement& placement) {
  ASSERT_EQ(placement.offsets.size(), intervals.size());
  for (size_t a = 0; a < intervals.size(); ++a) {
    ASSERT_GE(placement.offsets[a], 0);
    ASSERT_LE(placement.offsets[a] + intervals[a].bytes, placement.total);
    for (size_t b = a + 1; b < intervals.size(); ++b) {
      bool together = intervals[a].first <= intervals[b].last && intervals[b].first <= intervals[a].last;
      if (!together || intervals[a].bytes == 0 || intervals[b].bytes == 0) continue;
      if (placement.parts[a] != placement.parts[b]) continue;
      ASSERT_TRUE(placement.offsets[a] + intervals[a].bytes <= placement.offsets[b] ||
                  placement.offsets[b] + intervals[b].bytes <= placement.offsets[a])
          << "buffers " << a << " and " << b;
    }
  }
}

TEST(Place, BuffersThatAreAliveTogetherNeverOverlap) {
  for (uint32_t seed = 0; seed < 300; ++seed) {
    std::mt19937 random(seed);
    auto below = [&](int64_t n) { return static_cast<int64_t>(random() % static_cast<uint64_t>(n)); };
    const int32_t steps = 1 + static_cast<int32_t>(below(40));
    std::vector<Interval> intervals(below(60));
    for (Interval& i : intervals) {
      i.bytes = 64 * below(20);
      i.first = static_cast<int32_t>(below(steps));
      i.last = i.first + static_cast<int32_t>(below(steps - i.first));
    }
    Placement placement = PlaceIntervals(intervals);
    ExpectNoOverlap(intervals, placement);
    EXPECT_EQ(placement.lower_bound, MostBytesAtOnce(intervals, steps));
    EXPECT_GE(placement.total, placement.lower_bound);
    Placement again = PlaceIntervals(intervals);
    EXPECT_EQ(again.offsets, placement.offsets);
    EXPECT_EQ(again.total, placement.total);
  }
}

TEST(Place, NoPartIsLargerThanAllowedAndLittleMemoryIsWasted) {
  for (uint32_t seed = 0; seed < 300; ++seed) {
    std::mt19937 random(seed);
    auto below = [&](int64_t n) { return static_cast<int64_t>(random() % static_cast<uint64_t>(n)); };
    const int32_t steps = 1 + static_cast<int32_t>(below(40));
    std::vector<Interval> intervals(below(60));
    for (Interval& i : intervals) {
      i.bytes = 64 * below(20);
      i.first = static_cast<int32_t>(below(steps));
      i.last = i.first + static_cast<int32_t>(below(steps - i.first));
    }
    constexpr int64_t kLimit = 64 * 32;
    const Placement whole = PlaceIntervals(intervals), placement = PlaceIntervals(intervals, kLimit);
    ExpectNoOverlap(intervals, placement);
    int64_t total = 0;
    for (int64_t bytes : placement.part_bytes) {
      EXPECT_LE(bytes, kLimit);
      total += bytes;
    }
    for (size_t i = 0; i < intervals.size(); ++i) {
      ASSERT_LE(placement.offsets[i] + intervals[i].bytes, placement.part_bytes[placement.parts[i]]);
    }
    EXPECT_EQ(placement.total, total);
    EXPECT_EQ(placement.lower_bound, whole.lower_bound);
    if (whole.total <= kLimit) {
      EXPECT_EQ(placement.offsets, whole.offsets);
      EXPECT_EQ(placement.part_bytes.size(), 1u);
    }
  }
}

TEST(Place, ABufferLargerThanAllowedGetsItsOwnPart) {
  Placement placement = PlaceIntervals(std::vector<Interval>{{64, 0, 1}, {256, 0, 1}, {64, 0, 1}}, 128);
  EXPECT_EQ(placement.part_bytes, (std::vector<int64_t>{256, 128}));
}

TEST(Place, AChainNeedsItsTwoLargestNeighbours) {
  std::vector<Interval> chain;
  const int64_t bytes[] = {256, 1024, 512, 1024, 64};
  for (int32_t i = 0; i < 5; ++i) chain.push_back({bytes[i], i, i + 1});
  Placement placement = PlaceIntervals(chain);
  ExpectNoOverlap(chain, placement);
  EXPECT_EQ(placement.lower_bound, 1536);
  EXPECT_EQ(placement.total, 1536);
}

TEST(Place, EqualBuffersOfAChainAlternateBetweenTwoOffsets) {
  std::vector<Interval> chain;
  for (int32_t i = 0; i < 100; ++i) chain.push_back({4096, i, i + 1});
  EXPECT_EQ(PlaceIntervals(chain).total, 2 * 4096);
}

TEST(Place, BuffersNeverAliveTogetherShareOneOffset) {
  Placement placement = PlaceIntervals(std::vector<Interval>{{64, 0, 0}, {128, 1, 1}, {32, 2, 9}});
  EXPECT_EQ(placement.total, 128);
  EXPECT_EQ(placement.offsets, (std::vector<int64_t>{0, 0, 0}));
}

TEST(Place, NoBuffersNeedNoMemory) {
  Placement placement = PlaceIntervals({});
  EXPECT_EQ(placement.total, 0);
  EXPECT_TRUE(placement.offsets.empty());
  EXPECT_EQ(PlaceIntervals(std::vector<Interval>{{0, 0, 3}, {0, 1, 2}}).total, 0);
}

TEST(PlaceIntervals, ComparesEachBufferOfAChainWithItsNeighboursOnly) {
  std::vector<Interval> chain;
  for (int32_t i = 0; i < 20000; ++i) chain.push_back({64 + i % 7 * 64, i, i + 1});
  const Placement placement = PlaceIntervals(chain);
  EXPECT_LT(placement.visits, 4 * 4 * 20000);
  EXPECT_LE(placement.total, 2 * placement.lower_bound);
}

TEST(PlaceIntervals, LimitsItsWorkForBuffersThatAreAllAliveTogether) {
  std::vector<Interval> all;
  for (int32_t i = 0; i < 20000; ++i) all.push_back({64, 0, i});
  const Placement placement = PlaceIntervals(all, std::numeric_limits<int64_t>::max(), std::nullopt, {.limit = 100000});
  EXPECT_LT(placement.visits, 100000 + 20000);
  EXPECT_EQ(placement.total, 64 * 20000);
}

}  // namespace
}  // namespace mge
