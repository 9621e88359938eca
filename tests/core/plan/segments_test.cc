// SPDX-License-Identifier: Apache-2.0
#include "core/plan/segments.h"

#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace mge {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr int32_t kBufferBytes = 64;

// A unit whose items have the same numbers as their buffers.
struct UnitSpec {
  int32_t queue;
  std::vector<int32_t> inputs, outputs;
};

// Returns the segments of the units, one step each. offsets[b] is the place of buffer b in the only arena.
Segments SegmentsOf(const std::vector<UnitSpec>& units, const std::vector<int64_t>& offsets) {
  Schedule schedule;
  MemoryPlan memory;
  BoundSteps bound;
  for (size_t b = 0; b < offsets.size(); ++b) {
    schedule.items.push_back({});
    memory.item_buffers.push_back(static_cast<int32_t>(b));
    memory.buffers.push_back({.bytes = kBufferBytes, .offset = offsets[b]});
  }
  for (const UnitSpec& spec : units) {
    PlannedUnit unit;
    unit.queue = spec.queue;
    unit.inputs = spec.inputs;
    unit.outputs = spec.outputs;
    bound.steps.push_back({nullptr, nullptr, static_cast<int32_t>(schedule.units.size())});
    bound.units.emplace_back();
    schedule.units.push_back(std::move(unit));
    memory.workspaces.push_back(-1);
    memory.packs.emplace_back();
    if (spec.queue != kCallingThread) schedule.queues.resize(static_cast<size_t>(spec.queue) + 1);
  }
  return FormSegments(schedule, memory, bound, {});
}

// Returns "thread 0..1 after 2" or "queue 1..2 signals 1": the first and last step, the points that the calling thread waits
// for, and the signal.
std::string TextOf(const Segment& s) {
  std::string text = s.queue == kCallingThread ? "thread " : "queue ";
  text += std::to_string(s.first_step) + ".." + std::to_string(s.first_step + s.step_count - 1);
  for (const FencePoint& p : s.host_waits) text += " after " + std::to_string(p.value);
  if (s.signal) text += " signals " + std::to_string(s.signal);
  return text;
}

std::vector<std::string> TextsOf(const Segments& segments) {
  std::vector<std::string> texts;
  for (const Segment& s : segments.segments) texts.push_back(TextOf(s));
  return texts;
}

TEST(Segments, AreOneWithoutQueues) {
  const Segments segments = SegmentsOf({{kCallingThread, {0}, {1}}, {kCallingThread, {1}, {2}}}, {0, 64, 128});
  EXPECT_THAT(TextsOf(segments), ElementsAre("thread 0..1"));
  EXPECT_THAT(segments.queues, IsEmpty());
}

TEST(Segments, OfTheCallingThreadWaitForTheQueueThatWroteTheirInput) {
  const Segments segments =
      SegmentsOf({{kCallingThread, {}, {0}}, {0, {0}, {1}}, {0, {1}, {2}}, {kCallingThread, {2}, {3}}}, {0, 64, 128, 192});
  EXPECT_THAT(TextsOf(segments), ElementsAre("thread 0..0", "queue 1..2 signals 1", "thread 3..3 after 1"));
  EXPECT_EQ(segments.queues[0].signals, 1u);
}

TEST(Segments, WaitForTheReadersOfMemoryThatTheyOverwrite) {
  const std::vector<UnitSpec> units = {{kCallingThread, {}, {0}}, {0, {0}, {1}}, {kCallingThread, {}, {2}}};
  EXPECT_THAT(TextsOf(SegmentsOf(units, {0, 64, 128})), ElementsAre("thread 0..0", "queue 1..1 signals 1", "thread 2..2"));
  EXPECT_THAT(TextsOf(SegmentsOf(units, {0, 64, 32})),
              ElementsAre("thread 0..0", "queue 1..1 signals 1", "thread 2..2 after 1"));
}

TEST(Segments, DoNotWaitForWhatAnEarlierWaitImplies) {
  const Segments segments =
      SegmentsOf({{0, {}, {0}}, {0, {}, {1}}, {kCallingThread, {1}, {2}}, {kCallingThread, {0}, {3}}}, {0, 64, 128, 192});
  EXPECT_THAT(TextsOf(segments), ElementsAre("queue 0..1 signals 1", "thread 2..3 after 1"));
}

}  // namespace
}  // namespace mge
