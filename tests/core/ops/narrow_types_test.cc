// SPDX-License-Identifier: Apache-2.0
// Operators on elements of 8 bits and less.
#include "tests/core/ops/both_ways.h"

namespace mge {
namespace {

using ::testing::HasSubstr;

TEST(NarrowTypes, CastConvertsInBothDirections) {
  EXPECT_EQ(Both("Cast", {"float32[4]<0.3, 1000000, nan, -inf>"}, "{to=17}"), "float8e4m3fn[4]<0.3125, 448.0, nan, -448.0>");
  EXPECT_EQ(Both("Cast", {"float32[2]<inf, -1000000>"}, "{to=19, saturate=0}"), "float8e5m2[2]<inf, -inf>");
  EXPECT_EQ(Both("Cast", {"float32[2]<1.1, 4>"}, "{to=24, round_mode=\"down\"}"), "float8e8m0[2]<1.0, 4.0>");
  EXPECT_EQ(Both("Cast", {"float8e4m3fn[2]<448, -0.25>"}, "{to=10}"), "float16[2]<448.0, -0.25>");
  EXPECT_EQ(Both("Cast", {"float32[5]<-9, -1.9, 7.5, 8, nan>"}, "{to=22}"), "int4[5]<7, -1, 7, -8, 0>");
  EXPECT_EQ(Both("Cast", {"int64[3]<-1, 16, 300>"}, "{to=21}"), "uint4[3]<15, 0, 12>");
  EXPECT_EQ(Both("Cast", {"int2[4]<0, 1, -2, -1>"}, "{to=7}"), "int64[4]<0, 1, -2, -1>");
  EXPECT_EQ(Both("Cast", {"uint4[2]<15, 8>"}, "{to=22}"), "int4[2]<-1, -8>");
  EXPECT_EQ(Both("Cast", {"string[2]<\"-3\", \"6\">"}, "{to=23}"), "float4e2m1[2]<-3.0, 6.0>");
  EXPECT_EQ(Both("Cast", {"uint2[2]<3, 0>"}, "{to=9}"), "bool[2]<true, false>");
  EXPECT_EQ(Both("Cast", {"float64[1]<1.0625000000001>"}, "{to=17}"), "float8e4m3fn[1]<1.125>");  // rounds once
  EXPECT_EQ(Both("CastLike", {"float32[2]<0.1, -7>", "float4e2m1[1]<0>"}), "float4e2m1[2]<0.0, -6.0>");
}

TEST(NarrowTypes, QuantizeLinearSaturatesAtTheirLimits) {
  EXPECT_EQ(Both("QuantizeLinear", {"float32[4]<-40, -3, 5, 40>", "float32[]<2>", "int4[]<1>"}), "int4[4]<-8, -1, 3, 7>");
  EXPECT_EQ(Both("QuantizeLinear", {"float32[3]<-1, 1, 9>", "float32[]<1>"}, "{output_dtype=25}"), "uint2[3]<0, 1, 3>");
  EXPECT_EQ(Both("QuantizeLinear", {"float32[2]<3, 100000>", "float32[]<2>", "float8e4m3fn[]<0>"}),
            "float8e4m3fn[2]<1.5, 448.0>");
  EXPECT_EQ(Both("QuantizeLinear", {"float32[1]<100000>", "float32[]<1>", "float8e5m2[]<0>"}, "{saturate=0}"),
            "float8e5m2[1]<inf>");
  EXPECT_EQ(Both("DequantizeLinear", {"int4[2,2]<-8, 7, 1, 0>", "float32[2]<1, 2>", "int4[2]<0, 1>"}, "{axis=0}"),
            "float32[2,2]<-8.0, 7.0, 0.0, -2.0>");
  EXPECT_EQ(Both("DequantizeLinear", {"float8e5m2[2]<1.5, -4>", "float16[]<2>"}), "float16[2]<3.0, -8.0>");
  EXPECT_THAT(Both("DequantizeLinear", {"int4[1]<1>", "float32[]<1>", "uint4[]<1>"}), HasSubstr("must be the same"));
}

TEST(NarrowTypes, MovementKeepsTheirElements) {
  EXPECT_EQ(Both("Identity", {"int4[2]<-8, 7>"}), "int4[2]<-8, 7>");
  EXPECT_EQ(Both("Reshape", {"float8e5m2[2]<1, nan>", "int64[2]<1, 2>"}), "float8e5m2[1,2]<1.0, nan>");
  EXPECT_EQ(Both("Transpose", {"uint2[2,2]<0, 1, 2, 3>"}), "uint2[2,2]<0, 2, 1, 3>");
  EXPECT_EQ(Both("Concat", {"int2[1]<-2>", "int2[1]<1>"}, "{axis=0}"), "int2[2]<-2, 1>");
  EXPECT_EQ(Both("Gather", {"float4e2m1[3]<1, 2, 3>", "int64[2]<2, 0>"}), "float4e2m1[2]<3.0, 1.0>");
  EXPECT_EQ(Both("Constant", {}, "{value=float8e8m0[2]<1, 4>}"), "float8e8m0[2]<1.0, 4.0>");
}

TEST(NarrowTypes, ArithmeticNamesTheTypesThatItHas) {
  EXPECT_THAT(Both("Add", {"int4[1]<1>", "int4[1]<1>"}), HasSubstr("input 'A' has type int4"));
  EXPECT_THAT(Both("NonZero", {"int4[1]<1>"}), HasSubstr("input 'X' has type int4"));
  EXPECT_THAT(Both("Unique", {"uint2[1]<1>"}), HasSubstr("input 'X' has type uint2"));
  EXPECT_THAT(Both("Cast", {"float32[1]<1>"}, "{to=27}"), HasSubstr("attribute 'to' is 27"));
  EXPECT_THAT(Both("Cast", {"float32[1]<1>"}, "{to=24, round_mode=\"odd\"}"), HasSubstr("is not one of up, down, nearest"));
}

}  // namespace
}  // namespace mge
