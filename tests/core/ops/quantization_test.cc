// SPDX-License-Identifier: Apache-2.0
// QuantizeLinear, DequantizeLinear, DynamicQuantizeLinear, QLinearMatMul.
#include "tests/core/ops/both_ways.h"

namespace mge {
namespace {

using ::testing::HasSubstr;

TEST(QuantizeLinear, RoundsHalvesToEvenAndSaturates) {
  EXPECT_EQ(Both("QuantizeLinear", {"float32[6]<1, 3, 5, -1, 1000, nan>", "float32[]<2>", "uint8[]<0>"}),
            "uint8[6]<0, 2, 2, 0, 255, 0>");
  EXPECT_EQ(Both("QuantizeLinear", {"float32[4]<1, -1000, inf, -inf>", "float32[]<1>", "int8[]<1>"}),
            "int8[4]<2, -128, 127, -128>");
  EXPECT_EQ(Both("QuantizeLinear", {"float32[1]<3>", "float32[]<1>"}), "uint8[1]<3>");
  EXPECT_EQ(Both("QuantizeLinear", {"int32[2]<70000, -5>", "float32[]<1>", "int16[]<0>"}), "int16[2]<32767, -5>");
}

TEST(QuantizeLinear, ScalesPerAxisAndPerBlock) {
  EXPECT_EQ(Both("QuantizeLinear", {"float32[2,2]<2, 2, 4, 4>", "float32[2]<1, 2>", "uint8[2]<0, 10>"}),
            "uint8[2,2]<2, 11, 4, 12>");
  EXPECT_EQ(Both("QuantizeLinear", {"float32[2,2]<2, 2, 4, 4>", "float32[2]<1, 2>"}, "{axis=-2}"), "uint8[2,2]<2, 2, 2, 2>");
  EXPECT_EQ(Both("QuantizeLinear", {"float32[1,3]<8, 8, 8>", "float32[1,2]<1, 4>"}, "{block_size=2}"),
            "uint8[1,3]<8, 8, 2>");
}

TEST(QuantizeLinear, DividesInTheTypeOfTheScale) {
  // 2049 is 2048 in float16.
  EXPECT_EQ(Both("QuantizeLinear", {"float32[1]<2049>", "float16[]<1>", "int16[]<0>"}), "int16[1]<2048>");
  EXPECT_EQ(Both("QuantizeLinear", {"float32[1]<2049>", "float16[]<1>", "int16[]<0>"}, "{precision=1}"), "int16[1]<2049>");
}

TEST(QuantizeLinear, RefusesInputsThatDoNotFit) {
  const char* x = "float32[2,2]<1>";
  EXPECT_THAT(Both("QuantizeLinear", {x, "float32[3]<1>"}), HasSubstr("[3]; it must be [2]"));
  EXPECT_THAT(Both("QuantizeLinear", {x, "float32[2]<1>"}, "{axis=2}"), HasSubstr("axis 2 is outside"));
  EXPECT_THAT(Both("QuantizeLinear", {x, "float32[2]<1>", "uint8[]<1>"}), HasSubstr("the zero point"));
  EXPECT_THAT(Both("QuantizeLinear", {x, "float32[]<1>", "uint8[]<1>"}, "{output_dtype=3}"), HasSubstr("is int8"));
  EXPECT_THAT(Both("QuantizeLinear", {x, "float32[]<1>"}, "{output_dtype=27}"), HasSubstr("is not an element type that"));
  EXPECT_THAT(Both("QuantizeLinear", {x, "float32[]<1>"}, "{output_dtype=1}"), HasSubstr("is not an element type that"));
  EXPECT_THAT(Both("QuantizeLinear", {x, "float32[]<1>"}, "{block_size=-1}"), HasSubstr("block_size = -1"));
  EXPECT_THAT(Both("QuantizeLinear", {x, "float32[2,3]<1>"}, "{block_size=1}"), HasSubstr("one for each block"));
  EXPECT_EQ(Both("QuantizeLinear", {"float32[0]<>", "float32[]<1>"}), "uint8[0]<>");
}

TEST(DequantizeLinear, IsTheInverseOfQuantizeLinear) {
  EXPECT_EQ(Both("DequantizeLinear", {"uint8[2]<0, 255>", "float32[]<2>", "uint8[]<128>"}), "float32[2]<-256.0, 254.0>");
  EXPECT_EQ(Both("DequantizeLinear", {"int32[2]<1, 2>", "float32[]<0.5>"}), "float32[2]<0.5, 1.0>");
  EXPECT_EQ(Both("DequantizeLinear", {"int8[2,2]<1, 1, 2, 2>", "float16[2]<1, 2>"}), "float16[2,2]<1.0, 2.0, 2.0, 4.0>");
  EXPECT_EQ(Both("DequantizeLinear", {"int8[1]<3>", "float32[]<1>"}, "{output_dtype=10}"), "float16[1]<3.0>");
  EXPECT_THAT(Both("DequantizeLinear", {"uint8[2]<1>", "float32[]<1>", "int8[]<1>"}), HasSubstr("must be the same"));
}

TEST(DynamicQuantizeLinear, CoversTheDataAndZero) {
  const std::vector<std::string> x = {"float32[3]<0, 127.5, 255>"};
  EXPECT_EQ(RunOp("DynamicQuantizeLinear", x, "", 3, 0), "uint8[3]<0, 128, 255>");
  EXPECT_EQ(RunOp("DynamicQuantizeLinear", x, "", 3, 1), "float32[]<1.0>");
  EXPECT_EQ(RunOp("DynamicQuantizeLinear", {"float32[2]<-255, -1>"}, "", 3, 2), "uint8[]<255>");
  EXPECT_EQ(RunOp("DynamicQuantizeLinear", {"float32[0]<>"}, "", 3, 1), "float32[]<1.0>");
}

std::string MatMul(const char* a, const char* a_scale, const char* a_zero, const char* b, const char* b_scale,
                   const char* b_zero) {
  return Both("QLinearMatMul", {a, a_scale, a_zero, b, b_scale, b_zero, "float32[]<1>", "int8[]<0>"});
}

TEST(QLinearMatMul, MultipliesRealNumbers) {
  const char* a = "int8[2,2]<1, 2, 3, 4>";
  const char* b = "int8[2,2]<1, 0, 0, 1>";
  EXPECT_EQ(MatMul(a, "float32[]<2>", "int8[]<0>", b, "float32[]<1>", "int8[]<0>"), "int8[2,2]<2, 4, 6, 8>");
  EXPECT_EQ(MatMul(a, "float32[2]<1, 10>", "int8[2]<0, 1>", b, "float32[2]<1, 2>", "int8[2]<0, 0>"),
            "int8[2,2]<1, 4, 20, 60>");
  EXPECT_EQ(MatMul("int8[2]<1, 2>", "float32[]<1>", "int8[]<0>", b, "float32[]<1>", "int8[]<0>"), "int8[2]<1, 2>");
  EXPECT_EQ(MatMul("int8[2]<1, 2>", "float32[]<1>", "int8[]<0>", "int8[2]<3, 4>", "float32[]<1>", "int8[]<0>"),
            "int8[]<11>");
}

TEST(QLinearMatMul, BroadcastsBatches) {
  EXPECT_EQ(
      MatMul("int8[2,1,1]<1, 2>", "float32[2,1,1]<1, 10>", "int8[]<0>", "int8[1,2]<1, 2>", "float32[]<1>", "int8[]<0>"),
      "int8[2,1,2]<1, 2, 20, 40>");
  EXPECT_EQ(
      MatMul("int8[1,1,1]<2>", "float32[1,1,1]<2>", "int8[]<0>", "int8[2,1,1]<1, 2>", "float32[2,1,1]<1, 3>", "int8[]<0>"),
      "int8[2,1,1]<4, 24>");
}

TEST(QLinearMatMul, RefusesInputsThatDoNotFit) {
  const char* a = "int8[2,2]<1>";
  EXPECT_THAT(MatMul(a, "float32[]<1>", "int8[]<0>", "int8[3,2]<1>", "float32[]<1>", "int8[]<0>"), HasSubstr("must be 2"));
  EXPECT_THAT(MatMul(a, "float32[3]<1>", "int8[]<0>", a, "float32[]<1>", "int8[]<0>"), HasSubstr("zero point of a"));
  EXPECT_THAT(MatMul("int8[]<1>", "float32[]<1>", "int8[]<0>", a, "float32[]<1>", "int8[]<0>"), HasSubstr("scalar"));
}

}  // namespace
}  // namespace mge
