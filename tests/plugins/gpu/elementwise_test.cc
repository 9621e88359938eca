// SPDX-License-Identifier: Apache-2.0
// Errors of a run, and the limits of a chain that runs in one launch.
#include <algorithm>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/plugins/gpu/under_test.h"
#include "tests/support/chain.h"

namespace mge::testing {
namespace {

TEST(Elementwise, AnIntegerDivisionByZeroIsAnErrorOfTheRun) {
  for (const char* op : {"Div", "Mod"}) {
    std::vector<Tensor> never = {Fill(DType::kI32, {3}, {0, 0, 0})};
    auto outcome = UnderTest().Check(OneNode(op, {Fill(DType::kI32, {3}, {1, 2, 3}), Fill(DType::kI32, {3}, {1, 0, 1})}),
                                     Exactly, &never);
    ASSERT_FALSE(outcome.codes.empty());
    EXPECT_EQ(outcome.codes[0], MGE_INVALID_ARGUMENT);
    EXPECT_THAT(outcome.errors[0], ::testing::HasSubstr("an integer is divided by zero"));
  }
}

TEST(Elementwise, TheLowestIntegerDividedByMinusOneWrapsAround) {
  for (const auto& [t, lowest] : {std::pair(DType::kI8, -128.0),
                                  {DType::kI16, -32768.0},
                                  {DType::kI32, -2147483648.0},
                                  {DType::kI64, -9223372036854775808.0}}) {
    for (const char* op : {"Div", "Mod"}) {
      UnderTest().Check(OneNode(op, {Fill(t, {3}, {lowest, lowest, 7}), Fill(t, {3}, {-1, 2, -1})}), Exactly);
    }
  }
}

TEST(CumSum, LeavesTheCheckOfAnAxisToTheHostIfThereIsNoElement) {
  std::vector<Tensor> none = {Fill(DType::kF32, {0, 3}, {})};
  const Case c = OneNode("CumSum", {Fill(DType::kF32, {0, 3}, {}), Fill(DType::kI64, {}, {5})});
  EXPECT_TRUE(UnderTest().Offers(c, &none).candidates.empty());
}

TEST(Elementwise, AChainIsOneKernel) {
  Case broadcasts = OneNode("Mul", {Random(DType::kF32, {2, 3, 5, 70}), Random(DType::kF32, {3, 1, 1}, 0.5, 2, 2)});
  Then(broadcasts, "Sigmoid");
  Then(broadcasts, "Add", {Random(DType::kF32, {70}, -1, 1, 3)}, {}, false);
  Case dense = OneNode("Add", {Random(DType::kF32, {1000}), Random(DType::kF32, {1000}, -1, 1, 2)});
  Then(dense, "Relu");
  OnEveryMachine([&](Backend& backend) {
    EXPECT_THAT(backend.Offers(broadcasts).candidates, ::testing::ElementsAre("gpu.chain", "gpu.chain.nhwc"));
    EXPECT_THAT(backend.Offers(dense).candidates, ::testing::ElementsAre("gpu.chain"));
  });
}

// Operands per channel, per position, of fewer dimensions, and constants, beside a result with the channels last.
TEST(Elementwise, ChannelsLastReadsOperandsOfEveryShape) {
  for (const Shape& shape :
       {Shape{2, 3, 5, 7}, {1, 3, 1, 1}, {3, 1, 1}, {2, 1, 5, 7}, {5, 1}, {7}, {}, {1, 3, 5, 7}, {3, 5, 7}, {2, 3, 1, 1}}) {
    for (bool constant : {false, true}) {
      for (const char* op : {"Mul", "Greater"}) {
        Case c = OneNode(op, {Random(DType::kF32, {2, 3, 5, 7}), Random(DType::kF32, shape, 0.5, 2, 2)}, {},
                         constant ? std::vector<int>{1} : std::vector<int>{});
        auto outcome = UnderTest().Check(c, Closely);
        const bool whole = constant && shape == Shape{2, 3, 5, 7};  // constants are plain
        EXPECT_EQ(outcome.candidates.size(), whole ? 1u : 2u) << c.name;
      }
      Case chain = OneNode("Sigmoid", {Random(DType::kF32, {2, 3, 5, 7})});
      Then(chain, "Mul", {Random(DType::kF32, shape, 0.5, 2, 2)}, {}, constant);
      Then(chain, "Relu");
      EXPECT_THAT(UnderTest().Check(chain, Closely).candidates, ::testing::Contains("gpu.chain.nhwc")) << shape.size();
    }
  }
  Case where = OneNode("Where", {Random(DType::kBool, {2, 1, 5, 7}, 0, 1), Random(DType::kF32, {2, 3, 5, 7}),
                                 Random(DType::kF32, {3, 1, 1}, -2, 2, 2)});
  EXPECT_EQ(UnderTest().Check(where, Exactly).candidates.size(), 2u);
}

// The output may have more dimensions than the input, and then another layout.
TEST(Elementwise, ChannelsLastOverwritesOnlyAnInputOfTheSameLayout) {
  Case c = OneNode("Mul", {Random(DType::kF32, {3, 5, 7}), Random(DType::kF32, {1, 1, 1, 1})});
  EXPECT_EQ(UnderTest().Check(c, Closely).candidates.size(), 2u);
}

TEST(Elementwise, LongChainsAreSplitIntoKernels) {
  Case c = OneNode("Tanh", {Random(DType::kF32, {16}, 0.1, 1)});
  for (int i = 1; i < 70; ++i) Then(c, i % 2 ? "Sigmoid" : "Sqrt");
  auto claims = UnderTest().Claims(c);
  ASSERT_FALSE(claims.empty());
  EXPECT_EQ(std::count(claims[0].begin(), claims[0].end(), ' '), 32);
}

TEST(Elementwise, GroupsBeyondTheLimitsOfAChainAreNotClaimed) {
  Case other_type = OneNode("Relu", {Random(DType::kF16, {16})});
  Then(other_type, "Exp");
  EXPECT_TRUE(UnderTest().Claims(other_type).empty());
}

TEST(Elementwise, AChainAlsoStoresAnInnerValueThatOthersRead) {
  Case read_twice = OneNode("Relu", {Random(DType::kF32, {16})});
  ValueId relu = read_twice.graph.outputs()[0];
  Then(read_twice, "Exp");
  read_twice.graph.outputs().push_back(relu);
  EXPECT_EQ(UnderTest().Claims(read_twice).size(), 1u);
}

}  // namespace
}  // namespace mge::testing
