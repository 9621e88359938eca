// SPDX-License-Identifier: Apache-2.0
#include "core/plan/memory/buffers.h"

#include <algorithm>

#include "core/plan/passes/pass.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/plan_context.h"

namespace mge {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

// A graph with a schedule that has one kernel per node, in host memory.
struct Scheduled {
  Graph graph = {};
  Cover cover = {};
  Schedule schedule = {};
  PreparedKernels kernels = {};
  PlanContext context = ContextWith();
};

// Returns the schedule of a graph. `in_place`: each kernel may write its first output over its first input.
Scheduled ScheduleOf(std::string_view text, bool in_place) {
  Scheduled s = {.graph = *ParseGraphText(text)};
  EXPECT_TRUE(RunPasses(s.graph, {.allocator = &UnlimitedHostAllocator()}, nullptr).ok());
  s.cover.deferred_values.assign(static_cast<size_t>(s.graph.value_count()), false);
  Schedule& schedule = s.schedule;
  schedule.spaces = {{.memory_class = MGE_MEMORY_PINNED}};
  auto add_item = [&](ValueId v, int32_t unit) {
    schedule.items.push_back({.value = v, .made_by = unit});
    schedule.versions[v].push_back(static_cast<int32_t>(schedule.items.size()) - 1);
    return schedule.versions[v].back();
  };
  auto use = [&](ValueId v, int32_t unit) {
    Item& item = schedule.items[schedule.versions.at(v).front()];
    item.last_use = std::max(item.last_use, unit);
    return schedule.versions.at(v).front();
  };
  for (ValueId v : s.graph.inputs()) add_item(v, -1);
  const std::vector<NodeId> order = *s.graph.TopologicalOrder();
  for (NodeId id : order) {
    const int32_t u = static_cast<int32_t>(schedule.units.size());
    PlannedUnit unit;
    for (ValueId v : s.graph.node(id).inputs) unit.inputs.push_back(use(v, u));
    for (ValueId v : s.graph.node(id).outputs) unit.outputs.push_back(add_item(v, u));
    if (in_place) unit.candidate.in_place = {{0, 0}};
    schedule.units.push_back(std::move(unit));
  }
  for (ValueId v : s.graph.outputs()) use(v, kEnd);
  s.kernels.units.resize(schedule.units.size());
  return s;
}

MemoryPlan MemoryOf(const Scheduled& s) {
  absl::StatusOr<MemoryPlan> memory = AssignBuffers(s.graph, s.cover, s.schedule, s.kernels, s.context, nullptr);
  EXPECT_TRUE(memory.ok()) << memory.status();
  return *std::move(memory);
}

constexpr char kChain[] = "input x : float32[64]\na = Relu(x)\nb = Neg(a)\nc = Exp(b)\ny = Neg(c)\noutput y\n";

TEST(Buffers, ReuseTheMemoryOfValuesThatNothingReadsAnyMore) {
  const MemoryPlan memory = MemoryOf(ScheduleOf(kChain, false));
  ASSERT_EQ(memory.placed.size(), 3u);
  EXPECT_EQ(memory.placed[0].offset, memory.placed[2].offset);
  EXPECT_NE(memory.placed[0].offset, memory.placed[1].offset);
  EXPECT_EQ(memory.arenas[0].bytes, 2 * 256);
  EXPECT_THAT(memory.in_place, ElementsAre("", "", "", ""));
}

TEST(Buffers, OfOneChainInPlaceAreTheMemoryOfTheOutput) {
  const MemoryPlan memory = MemoryOf(ScheduleOf(kChain, true));
  EXPECT_THAT(memory.in_place, ElementsAre("", "b over a", "c over b", "y over c"));
  EXPECT_EQ(memory.arenas[0].bytes, 0);
  EXPECT_EQ(memory.SlotOf(memory.BufferOf(1), false).base, memory.outputs[0].location.slot.base);
  EXPECT_THAT(memory.output_copies, IsEmpty());
}

TEST(Buffers, AreNotOverwrittenBeforeTheirLastReader) {
  const Scheduled s =
      ScheduleOf("input x : float32[64]\na = Relu(x)\nb = Neg(a)\nc = Exp(b)\ny = Add(c, a)\noutput y\n", true);
  const MemoryPlan memory = MemoryOf(s);
  EXPECT_THAT(memory.in_place, ElementsAre("", "", "c over b", "y over c"));
}

TEST(Buffers, WithRedZonesStayInTheArenaAndOutputsAreCopied) {
  Scheduled s = ScheduleOf(kChain, true);
  s.context.settings = SettingsWith({{"debug.check_memory", "1"}});
  const MemoryPlan memory = MemoryOf(s);
  EXPECT_EQ(memory.arenas[0].bytes, 256 + 2 * kRedZoneBytes);
  ASSERT_EQ(memory.output_copies.size(), 1u);
  EXPECT_EQ(memory.output_copies[0].output, 0);
}

TEST(Buffers, ThatAQueueUsesInHostMemoryLiveLonger) {
  Scheduled s = ScheduleOf(kChain, false);
  s.schedule.queues = {{}};
  for (PlannedUnit& unit : s.schedule.units) unit.queue = 0;
  const MemoryPlan memory = MemoryOf(s);
  ASSERT_EQ(memory.placed.size(), 4u);  // the output too: a queue cannot write the caller's memory
  for (const PlacedBuffer& b : memory.placed) EXPECT_THAT(std::pair(b.first, b.last), testing::Pair(0, 4)) << b.name;
  EXPECT_EQ(memory.arenas[0].bytes, 4 * 256);
  EXPECT_EQ(memory.output_copies.size(), 1u);
}

TEST(Buffers, OfAnOutputThatIsGivenTwiceAreWrittenOnceAndCopied) {
  const MemoryPlan memory = MemoryOf(ScheduleOf("input x : float32[64]\ny = Relu(x)\noutput y\noutput y\n", false));
  ASSERT_EQ(memory.outputs.size(), 2u);
  EXPECT_NE(memory.outputs[0].location.slot.base, memory.outputs[1].location.slot.base);
  ASSERT_EQ(memory.output_copies.size(), 1u);
  EXPECT_EQ(memory.output_copies[0].output, 1);
}

}  // namespace
}  // namespace mge
