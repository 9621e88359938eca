// SPDX-License-Identifier: Apache-2.0
// Reductions that the CPU backend lacks: an axis read in the run, Hardmax, MaxPool with indices.
#include "gtest/gtest.h"
#include "tests/plugins/gpu/under_test.h"

namespace mge::testing {
namespace {

TEST(Reduction, CumSumReadsItsAxisWhenItRuns) {
  for (DType t : {DType::kF32, DType::kF64, DType::kF16, DType::kI32}) {
    for (double axis : {0, 1, 2}) {
      for (int64_t flag : {0, 1, 2, 3}) {
        UnderTest().Check(OneNode("CumSum", {Random(t, {3, 4, 5}), Fill(DType::kI64, {}, {axis})},
                                  With({{"exclusive", flag & 1}, {"reverse", flag >> 1}})),
                          Roughly);
      }
    }
  }
}

// Few outputs of many elements: along lines, across them, and on axes between others.
TEST(Reduction, JoinsTheParts) {
  for (const char* op : {"ReduceSum", "ReduceMean", "ReduceMax", "ReduceMin"}) {
    for (DType t : {DType::kF32, DType::kF64, DType::kF16, DType::kBF16}) {
      UnderTest().Check(OneNode(op, {Random(t, {3, 5000}), Integers({1})}, {}, {1}), Roughly);
      UnderTest().Check(OneNode(op, {Random(t, {150, 7}), Integers({0})}, {}, {1}), Roughly);
      UnderTest().Check(OneNode(op, {Random(t, {9, 3, 25, 20}), Integers({0, 2, 3})}, {}, {1}), Roughly);
    }
  }
}

TEST(Reduction, NormsBeyondTheRangeOfTheTypeSaturate) {
  for (DType t : {DType::kI32, DType::kU32}) {
    UnderTest().Check(OneNode("ReduceL2", {Fill(t, {2, 2}, {2147483647, 1147483647, 3, 4}), Integers({1})}, {}, {1}),
                      Exactly);
  }
}

TEST(Reduction, AnAxisOutOfRangeIsAnErrorOfTheRun) {
  std::vector<Tensor> never = {Fill(DType::kF32, {3}, {0, 0, 0})};
  auto outcome =
      UnderTest().Check(OneNode("CumSum", {Random(DType::kF32, {3}), Fill(DType::kI32, {}, {1})}), Exactly, &never);
  ASSERT_FALSE(outcome.codes.empty());
  EXPECT_EQ(outcome.codes[0], MGE_OUT_OF_RANGE);
}

TEST(Reduction, ComputesHardmaxAlongAnyAxis) {
  for (DType t : {DType::kF32, DType::kF64, DType::kF16, DType::kBF16}) {
    for (int64_t axis : {0, 1, -1})
      UnderTest().Check(OneNode("Hardmax", {Random(t, {3, 4, 7})}, With({{"axis", axis}})), Exactly);
  }
}

TEST(Reduction, MaxPoolGivesIndices) {
  for (int64_t order : {0, 1}) {
    Attributes a =
        With({{"kernel_shape", Ints{3, 2}}, {"strides", Ints{2, 1}}, {"pads", Ints{1, 0, 1, 1}}, {"storage_order", order}});
    UnderTest().Check(OneNode("MaxPool", {Random(DType::kF32, {2, 3, 7, 8})}, a, {}, 2), Exactly);
  }
}

}  // namespace
}  // namespace mge::testing
