// SPDX-License-Identifier: Apache-2.0
// Tensors that are dropped, swapped out and evicted come back with the same elements.
#include "core/eager/eager_interpreter.h"
#include "tests/core/eager/eager.h"

namespace mge {
namespace {

using testing::AllOf;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;

constexpr int64_t kMB = 1'000'000;
const std::vector<Assignment> kDrop = {
    {"eager.drop", "1"}, {"eager.record_computing_path", "1"}, {"eager.dtr_minimum_bytes", "0"}};

class Rematerialization : public testing::TestWithParam<const char*> {};
INSTANTIATE_TEST_SUITE_P(Eager, Rematerialization, testing::Values("cpu0", "virtual0"));

TEST_P(Rematerialization, DropReleasesMemoryAndTheNextUseRecomputes) {
  const Eager eager(GetParam(), kDrop);
  const EagerTensorPtr x = eager.Put({1000}, std::vector<float>(1000, -2));
  const EagerTensorPtr y = eager.Apply("Abs", {x}), z = eager.Apply("Neg", {y});
  const std::vector<float> before = eager.Get(z);
  EXPECT_EQ(eager->counters().live_bytes, 12'000);
  ASSERT_TRUE(eager->Drop(*y).ok());
  ASSERT_TRUE(eager->Drop(*z).ok());
  ASSERT_TRUE(eager->Synchronize().ok());
  EXPECT_EQ(y->state(), EagerState::kDropped);
  EXPECT_EQ(eager->counters().live_bytes, 4'000);
  EXPECT_EQ(eager->counters().drops, 2);
  EXPECT_EQ(eager.Get(z), before);
  EXPECT_EQ(eager->counters().recomputations, 2);  // y is needed for z
  EXPECT_EQ(y->state(), EagerState::kReady);
  ASSERT_TRUE(eager->Drop(*y).ok());
  EXPECT_EQ(eager.Get(eager.Apply("Relu", {y})), std::vector<float>(1000, 2));  // used by a new operator
}

TEST_P(Rematerialization, WhatATensorWasComputedFromMayBeDeletedAfterADrop) {
  const Eager eager(GetParam(), kDrop);
  EagerTensorPtr x = eager.Put({1000}, std::vector<float>(1000, 3));
  const EagerTensorPtr y = eager.Apply("Neg", {x}), z = eager.Apply("Neg", {x});
  ASSERT_TRUE(eager->Drop(*y).ok());
  x.reset();  // y comes back, because it could not be recomputed any more
  ASSERT_TRUE(eager->Synchronize().ok());
  EXPECT_EQ(y->state(), EagerState::kReady);
  EXPECT_EQ(eager->counters().live_bytes, 8'000);
  EXPECT_EQ(eager.Get(y), std::vector<float>(1000, -3));
  ASSERT_TRUE(eager->Drop(*z).ok());  // ignored with a warning
  ASSERT_TRUE(eager->Synchronize().ok());
  EXPECT_EQ(z->state(), EagerState::kReady);
}

TEST(RematerializationSettings, DropAndSwapNeedTheirSettings) {
  const Eager eager("cpu0");
  const EagerTensorPtr y = eager.Apply("Neg", {eager.Put({2}, {1, 2})});
  EXPECT_THAT(FormatError(eager->Drop(*y)),
              AllOf(HasSubstr("E0207"), HasSubstr("eager.drop"), HasSubstr("MGE_EAGER_DROP=1")));
  EXPECT_THAT(FormatError(eager->SwapOut(*y)), HasSubstr("eager.swap"));
  EXPECT_THAT(FormatError(eager->SwapIn(*y)), HasSubstr("eager.swap"));
}

TEST(RematerializationSettings, ADropWithoutARecordedPathWarns) {
  std::vector<std::string> warnings;
  const Logger logger(
      LogLevel::kWarning,
      [](void* list, LogLevel, std::string_view text) { static_cast<std::vector<std::string>*>(list)->emplace_back(text); },
      &warnings);
  const Eager eager("cpu0", {{"eager.drop", "1"}}, logger);
  const EagerTensorPtr y = eager.Apply("Neg", {eager.Put({2}, {1, 2})});
  ASSERT_TRUE(eager->Drop(*y).ok());
  EXPECT_THAT(eager.Get(y), ElementsAre(-1, -2));
  ASSERT_TRUE(eager->Synchronize().ok());
  EXPECT_EQ(y->state(), EagerState::kReady);
  EXPECT_THAT(warnings, Contains(AllOf(HasSubstr("float32[2]"), HasSubstr("eager.record_computing_path"))));
}

TEST(RematerializationSettings, AutoDropTurnsOnTheOthers) {
  const Eager eager("cpu0", {{"eager.dtr_auto_drop", "1"}});
  EXPECT_TRUE(eager->options().drop);
  EXPECT_TRUE(eager->options().record_paths);
}

TEST_P(Rematerialization, RandomResultsAndSmallTensorsAreNeverDropped) {
  const Eager eager(GetParam(),
                    {{"eager.drop", "1"}, {"eager.record_computing_path", "1"}, {"eager.dtr_minimum_bytes", "4000"}});
  const EagerTensorPtr random = eager.Apply("RandomUniform", {}, With("shape", Ints{2000}));
  const EagerTensorPtr small = eager.Apply("Neg", {eager.Put({1000}, std::vector<float>(1000, 3))});
  const EagerTensorPtr large = eager.Apply("Neg", {eager.Put({1001}, std::vector<float>(1001, 3))});
  for (const EagerTensorPtr& y : {random, small, large}) ASSERT_TRUE(eager->Drop(*y).ok());
  ASSERT_TRUE(eager->Synchronize().ok());
  EXPECT_EQ(random->state(), EagerState::kReady);
  EXPECT_EQ(small->state(), EagerState::kReady);
  // The operand of `large` has no handle any more, so it came back.
  EXPECT_EQ(large->state(), EagerState::kReady);
}

TEST(Swap, MovesTensorsToTheHostAndBack) {
  const Eager eager("virtual0", {{"eager.swap", "1"}});
  const EagerTensorPtr y = eager.Apply("Neg", {eager.Put({1000}, std::vector<float>(1000, 3))});
  ASSERT_TRUE(eager->Synchronize().ok());
  EXPECT_EQ(eager->counters().live_bytes, 4000);
  ASSERT_TRUE(eager->SwapOut(*y).ok());
  ASSERT_TRUE(eager->Synchronize().ok());
  EXPECT_EQ(y->state(), EagerState::kSwapped);
  EXPECT_EQ(eager->counters().live_bytes, 0);
  EXPECT_EQ(eager.Get(eager.Apply("Abs", {y})), std::vector<float>(1000, 3));  // a use brings it back
  EXPECT_EQ(y->state(), EagerState::kReady);
  ASSERT_TRUE(eager->SwapOut(*y).ok());
  ASSERT_TRUE(eager->SwapIn(*y).ok());
  ASSERT_TRUE(eager->Synchronize().ok());
  EXPECT_EQ(y->state(), EagerState::kReady);
  EXPECT_EQ(eager.Get(y), std::vector<float>(1000, -3));
  EXPECT_EQ(eager->counters().swaps_out, 2);
  EXPECT_EQ(eager->counters().swaps_in, 2);
}

TEST(Swap, DoesNothingInHostMemory) {
  const Eager eager("cpu0", {{"eager.swap", "1"}});
  const EagerTensorPtr y = eager.Apply("Neg", {eager.Put({2}, {1, 2})});
  ASSERT_TRUE(eager->SwapOut(*y).ok());
  ASSERT_TRUE(eager->Synchronize().ok());
  EXPECT_EQ(y->state(), EagerState::kReady);
}

// ---- automatic eviction

// Computes a chain of operators, each of 10 MB, keeps all tensors, and returns the sums of all from the last to the first.
std::vector<float> SumsOfAChain(const Eager& eager, int count, int64_t elements) {
  EagerTensorPtr y = eager.Put(Eager::Waves({elements}));
  std::vector<EagerTensorPtr> all;
  for (int i = 0; i < count; ++i) all.push_back(y = eager.Apply(i % 2 ? "Neg" : "Sin", {y}));
  std::vector<float> sums;
  for (int i = count - 1; i >= 0; i -= 10) {
    sums.push_back(eager.Get(eager.Apply("ReduceSum", {all[static_cast<size_t>(i)]}, With("keepdims", int64_t{0})))[0]);
  }
  return sums;
}

TEST_P(Rematerialization, AChainOfAHundredOperatorsStaysNearTheThreshold) {
  const int64_t elements = std::string(GetParam()) == "cpu0" ? 2'500'000 : 250'000;
  const int64_t bytes = 4 * elements;
  std::vector<float> expected;
  {
    const Eager eager(GetParam());
    expected = SumsOfAChain(eager, 100, elements);
    EXPECT_GE(eager->counters().peak_bytes, 100 * bytes);
  }
  const Eager eager(GetParam(), {{"eager.dtr_auto_drop", "1"},
                                 {"eager.dtr_threshold_bytes", std::to_string(10 * bytes)},
                                 {"eager.dtr_minimum_bytes", "100000"}});
  EXPECT_EQ(SumsOfAChain(eager, 100, elements), expected);
  const EagerCounters c = eager->counters();
  EXPECT_LE(c.peak_bytes, 12 * bytes);
  EXPECT_GT(c.evictions, 80);
  EXPECT_GT(c.recomputations, 10);
  RecordProperty("recomputations", static_cast<int>(c.recomputations));
}

TEST_P(Rematerialization, TensorsUpToTheMinimumAreNeverEvicted) {
  const Eager eager(
      GetParam(),
      {{"eager.dtr_auto_drop", "1"}, {"eager.dtr_threshold_bytes", "100000"}, {"eager.dtr_minimum_bytes", "40000"}});
  SumsOfAChain(eager, 30, 10'000);
  EXPECT_EQ(eager->counters().evictions, 0);
  EXPECT_EQ(eager->counters().recomputations, 0);
  EXPECT_GT(eager->counters().peak_bytes, 30 * 40'000);
  SumsOfAChain(eager, 30, 10'001);
  EXPECT_GT(eager->counters().evictions, 0);
}

TEST_P(Rematerialization, ReleasedTensorsAreKeptOnlyAsPaths) {
  const Eager eager(GetParam(), {{"eager.dtr_auto_drop", "1"}, {"eager.dtr_minimum_bytes", "0"}});
  EagerTensorPtr y = eager.Put(Eager::Waves({1000}));
  for (int i = 0; i < 2000; ++i) y = eager.Apply("Neg", {y});  // the handles of all but the last are released
  ASSERT_TRUE(eager->Synchronize().ok());
  EXPECT_LE(eager->counters().live_bytes, 2 * 4000 + 4000);
  ASSERT_TRUE(eager->Drop(*y).ok());
  ASSERT_TRUE(eager->Synchronize().ok());
  auto reference = Eager::Waves({1000});
  auto span = reference.tensor.Data<float>();
  EXPECT_EQ(eager.Get(y), std::vector<float>(span.begin(), span.end()));
  EXPECT_EQ(eager->counters().recomputations, 2000);
  y.reset();  // a chain of 2000 calls, without recursion
  ASSERT_TRUE(eager->Synchronize().ok());
  EXPECT_EQ(eager->counters().live_bytes, 0);
}

TEST_P(Rematerialization, GradientsOfEvictedTensorsAreThoseOfKeptOnes) {
  auto gradient = [&](const Eager& eager) {
    const EagerTensorPtr w = eager.Put(Eager::Waves({64, 64}, 3));
    EagerTensorPtr y = eager.Put(Eager::Waves({64, 64}));
    auto tape = std::make_shared<EagerTape>(eager.get());
    EXPECT_TRUE(tape->Watch(w).ok());
    tape->Start();
    for (int i = 0; i < 20; ++i) y = eager.Apply("Tanh", {eager.Apply("MatMul", {y, w})});
    tape->Stop();
    auto g = tape->Gradient(y, {&w, 1});
    EXPECT_TRUE(g.ok()) << FormatError(g.status());
    return eager.Get((*g)[0]);
  };
  const std::vector<float> expected = gradient(Eager(GetParam()));
  const Eager eager(
      GetParam(),
      {{"eager.dtr_auto_drop", "1"}, {"eager.dtr_threshold_bytes", "200000"}, {"eager.dtr_minimum_bytes", "1000"}});
  EXPECT_EQ(gradient(eager), expected);
  EXPECT_GT(eager->counters().recomputations, 0);
  EXPECT_LE(eager->counters().peak_bytes, 300'000);
}

TEST(RematerializationSettings, AnAllocationThatFailsEvicts) {
  const Eager eager("virtual0",
                    {{"eager.dtr_auto_drop", "1"}, {"eager.dtr_minimum_bytes", "1000"}, {"memory.limit", "virtual0=40MB"}});
  std::vector<float> sums = SumsOfAChain(eager, 40, 250'000);
  EXPECT_EQ(sums, SumsOfAChain(Eager("virtual0"), 40, 250'000));
  EXPECT_GT(eager->counters().evictions, 0);
}

}  // namespace
}  // namespace mge
