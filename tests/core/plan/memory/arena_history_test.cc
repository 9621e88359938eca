// SPDX-License-Identifier: Apache-2.0
#include "core/plan/memory/arena_history.h"

#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace mge {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::UnorderedElementsAre;

MemoryPlan PlanOf(const std::vector<std::pair<int64_t, int64_t>>& places) {
  MemoryPlan memory;
  for (const auto& [offset, bytes] : places) memory.buffers.push_back({.bytes = bytes, .offset = offset});
  return memory;
}

std::vector<int32_t> Use(ArenaHistory& history, int32_t buffer) {
  std::vector<int32_t> before;
  history.Use(buffer, before);
  return before;
}

TEST(ArenaHistory, NamesTheLastOwnersOfEachByte) {
  const MemoryPlan memory = PlanOf({{0, 128}, {32, 32}, {0, 64}, {96, 64}, {0, 256}});
  ArenaHistory history(memory);
  EXPECT_THAT(Use(history, 0), IsEmpty());
  EXPECT_THAT(Use(history, 1), ElementsAre(0));
  EXPECT_THAT(Use(history, 2), UnorderedElementsAre(0, 1));
  EXPECT_THAT(Use(history, 3), ElementsAre(0));
  EXPECT_THAT(Use(history, 4), UnorderedElementsAre(2, 0, 3));
  EXPECT_THAT(Use(history, 4), IsEmpty()) << "only the first use counts";
}

TEST(ArenaHistory, KeepsArenasApart) {
  MemoryPlan memory = PlanOf({{0, 64}, {0, 64}, {0, 0}});
  memory.buffers[1].arena = 1;
  ArenaHistory history(memory);
  EXPECT_THAT(Use(history, 0), IsEmpty());
  EXPECT_THAT(Use(history, 1), IsEmpty());
  EXPECT_THAT(Use(history, 2), IsEmpty());
}

}  // namespace
}  // namespace mge
