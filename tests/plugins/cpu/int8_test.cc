// SPDX-License-Identifier: Apache-2.0
// Quantized operators, tests for the CPU backend alone: groups with the nodes of dynamic quantization, and scales that it
// refuses.
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/plugins/cpu/under_test.h"
#include "tests/plugins/operators/exact.h"
#include "tests/support/chain.h"

namespace mge::testing {
namespace {

TEST(MatMulInteger, WithTheNodesOfDynamicQuantization) {
  OnEveryMachine([](Backend& backend) {
    for (bool per_column : {true, false}) {
      for (bool bias : {true, false}) {
        Case c = OneNode(
            "MatMulInteger",
            {Bytes(DType::kU8, {2, 9, 36}, 1), Bytes(DType::kI8, {36, 50}, 2), Number(DType::kU8, 3), Number(DType::kI8, 0)},
            {}, {1, 3});
        Then(c, "Cast", {}, With({{"to", int64_t{1}}}));
        Then(c, "Mul", {Scales(per_column ? Shape{50} : Shape{1}, 4)}, {}, false);
        if (bias) Then(c, "Add", {Random(DType::kF32, {50}, -1, 1, 5)});
        const std::string group = bias ? "MatMulInteger Cast Mul Add" : "MatMulInteger Cast Mul";
        EXPECT_THAT(backend.Claims(c), ::testing::Contains("int8_epilogue: " + group));
        EXPECT_EQ(backend.Check(c, Closely).candidates.size(), 1u);
        Then(c, "QuantizeLinear", {Number(DType::kF32, 0.05), Number(DType::kI8, 3)});
        EXPECT_THAT(backend.Claims(c), ::testing::Contains("int8_epilogue: " + group + " QuantizeLinear"));
        CheckOffered(backend, c);
      }
    }
  });
}

TEST(ConvInteger, WithTheNodesOfDynamicQuantization) {
  OnEveryMachine([](Backend& backend) {
    for (int64_t group : {1, 12}) {
      Case c = OneNode("ConvInteger",
                       {Bytes(DType::kU8, {2, 12, 6, 7}, 1), Bytes(DType::kI8, {12, 12 / group, 3, 3}, 2),
                        Number(DType::kU8, 130), Number(DType::kI8, 0)},
                       With({{"pads", Ints{1, 1, 1, 1}}, {"group", group}}), {1, 3});
      Then(c, "Cast", {}, With({{"to", int64_t{1}}}));
      Then(c, "Mul", {Scales({1}, 4)}, {}, false);
      Then(c, "Add", {Random(DType::kF32, {1, 12, 1, 1}, -1, 1, 5)});
      EXPECT_EQ(backend.Check(c, Closely).candidates.size(), 1u);
    }
  });
}

TEST(DequantizeLinear, ScalesOfBlocksAreRefused) {
  OnEveryMachine([](Backend& backend) {
    Case c = OneNode("DequantizeLinear", {Bytes(DType::kU8, {4, 6}, 1), Random(DType::kF32, {4, 3}, 0.1, 0.3, 2)},
                     With({{"axis", int64_t{1}}, {"block_size", int64_t{2}}}));
    EXPECT_TRUE(backend.Offers(c).candidates.empty());
  });
}

}  // namespace
}  // namespace mge::testing
