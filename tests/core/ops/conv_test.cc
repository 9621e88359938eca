// SPDX-License-Identifier: Apache-2.0
// Conv, ConvTranspose, ConvInteger, QLinearConv, DeformConv, CausalConvWithState.
#include "tests/core/ops/both_ways.h"

namespace mge {
namespace {

using ::testing::HasSubstr;

TEST(Conv, SlidesTheKernel) {
  EXPECT_EQ(Both("Conv", {"float32[1,1,4]<1, 2, 3, 4>", "float32[1,1,2]<1, 10>"}), "float32[1,1,3]<21.0, 32.0, 43.0>");
  EXPECT_EQ(Both("Conv", {"float32[1,1,2,2]<1, 2, 3, 4>", "float32[1,1,1,2]<1, 10>", "float32[1]<0.5>"}),
            "float32[1,1,2,1]<21.5, 43.5>");
}

TEST(Conv, PadsStridesAndDilates) {
  EXPECT_EQ(Both("Conv", {"float32[1,1,3]<1, 2, 3>", "float32[1,1,3]<1, 10, 100>"}, "{pads=[1,1]}"),
            "float32[1,1,3]<210.0, 321.0, 32.0>");
  EXPECT_EQ(Both("Conv", {"float32[1,1,5]<1, 2, 3, 4, 5>", "float32[1,1,2]<1, 10>"}, "{strides=[2], dilations=[2]}"),
            "float32[1,1,2]<31.0, 53.0>");
  EXPECT_EQ(Both("Conv", {"float32[1,1,4]<1, 2, 3, 4>", "float32[1,1,1]<1>"}, "{pads=[-1,-1]}"), "float32[1,1,2]<2.0, 3.0>");
}

TEST(Conv, DividesChannelsIntoGroups) {
  EXPECT_EQ(Both("Conv", {"float32[1,2,2]<1, 2, 3, 4>", "float32[4,1,1]<1, 2, 3, 4>"}, "{group=2}"),
            "float32[1,4,2]<1.0, 2.0, 2.0, 4.0, 9.0, 12.0, 12.0, 16.0>");
}

TEST(Conv, WorksInThreeAndFourDimensions) {
  EXPECT_EQ(Both("Conv", {"float64[1,1,2,2,2]<1>", "float64[1,1,2,2,2]<1>"}, "{pads=[1,0,0,0,0,0]}"),
            "float64[1,1,2,1,1]<4.0, 8.0>");
  EXPECT_EQ(Both("Conv", {"float32[1,1,2,1,2,3]<1>", "float32[1,1,2,1,2,2]<1>"}), "float32[1,1,1,1,1,2]<8.0, 8.0>");
}

TEST(Conv, ComputesReducedPrecisionInFloat) {
  // 2048 + 1 - 2048 is 0 in float16, 1 in float.
  EXPECT_EQ(Both("Conv", {"float16[1,1,3]<2048, 1, -2048>", "float16[1,1,3]<1>"}), "float16[1,1,1]<1.0>");
  EXPECT_EQ(Both("Conv", {"bfloat16[1,1,3]<256, 1, -256>", "bfloat16[1,1,3]<1>"}), "bfloat16[1,1,1]<1.0>");
}

TEST(Conv, MakesEmptyResultsOfEmptyBatches) {
  EXPECT_EQ(Both("Conv", {"float32[0,1,4]<>", "float32[1,1,2]<1, 10>"}), "float32[0,1,3]<>");
  EXPECT_EQ(Both("Conv", {"float32[1,1,4]<1>", "float32[0,1,2]<>"}), "float32[1,0,3]<>");
  EXPECT_EQ(Both("Conv", {"float32[1,0,3]<>", "float32[1,0,2]<>", "float32[1]<7>"}), "float32[1,1,2]<7.0, 7.0>");
}

TEST(Conv, RefusesInputsThatDoNotFit) {
  const char* x = "float32[1,2,4]<1>";
  const char* w = "float32[2,2,2]<1>";
  EXPECT_THAT(Both("Conv", {x, w}, "{group=0}"), HasSubstr("group = 0 must be at least 1"));
  EXPECT_THAT(Both("Conv", {x, w}, "{group=-1}"), HasSubstr("group = -1 must be at least 1"));
  EXPECT_THAT(Both("Conv", {x, w}, "{group=2}"), HasSubstr("require 2 per group"));
  EXPECT_THAT(Both("Conv", {x, "float32[3,1,2]<1>"}, "{group=2}"), HasSubstr("3 output channels cannot be divided"));
  EXPECT_THAT(Both("Conv", {x, w}, "{strides=[0]}"), HasSubstr("strides = [0]"));
  EXPECT_THAT(Both("Conv", {x, w}, "{dilations=[0]}"), HasSubstr("dilations = [0]"));
  EXPECT_THAT(Both("Conv", {x, "float32[2,2,5]<1>"}), HasSubstr("the kernel does not fit: 5 taps"));
  EXPECT_THAT(Both("Conv", {x, w}, "{kernel_shape=[3]}"), HasSubstr("the spatial part of the weights"));
  EXPECT_THAT(Both("Conv", {x, "float32[2,2,2,2]<1>"}), HasSubstr("must have the same rank"));
  EXPECT_THAT(Both("Conv", {"float32[2,2]<1>", "float32[2,2]<1>"}), HasSubstr("at least 3"));
  EXPECT_THAT(Both("Conv", {x, w, "float32[3]<1>"}), HasSubstr("the bias has shape [3]; it must be [2]"));
  EXPECT_THAT(Both("Conv", {x, "float64[2,2,2]<1>"}), HasSubstr("must be the same"));
  EXPECT_THAT(Both("Conv", {"int32[1,2,4]<1>", "int32[2,2,2]<1>"}), HasSubstr("int32"));
}

TEST(ConvTranspose, SpreadsTheKernel) {
  EXPECT_EQ(Both("ConvTranspose", {"float32[1,1,2]<1, 2>", "float32[1,1,3]<1, 10, 100>"}),
            "float32[1,1,4]<1.0, 12.0, 120.0, 200.0>");
  EXPECT_EQ(Both("ConvTranspose", {"float32[1,1,2]<1, 2>", "float32[1,1,2]<1, 10>", "float32[1]<0.5>"},
                 "{strides=[2], output_padding=[1]}"),
            "float32[1,1,5]<1.5, 10.5, 2.5, 20.5, 0.5>");
  EXPECT_EQ(Both("ConvTranspose", {"float32[1,1,2]<1, 2>", "float32[1,1,3]<1, 10, 100>"}, "{pads=[1,1]}"),
            "float32[1,1,2]<12.0, 120.0>");
}

TEST(ConvTranspose, DividesChannelsIntoGroups) {
  EXPECT_EQ(Both("ConvTranspose", {"float64[1,2,1]<1, 2>", "float64[2,2,1]<1, 2, 3, 4>"}, "{group=2}"),
            "float64[1,4,1]<1.0, 2.0, 6.0, 8.0>");
}

TEST(ConvTranspose, RefusesInputsThatDoNotFit) {
  const char* x = "float32[1,2,2]<1>";
  EXPECT_THAT(Both("ConvTranspose", {x, "float32[1,1,2]<1>"}), HasSubstr("must be 2"));
  EXPECT_THAT(Both("ConvTranspose", {x, "float32[2,1,2]<1>"}, "{group=3}"), HasSubstr("cannot be divided"));
  EXPECT_THAT(Both("ConvTranspose", {x, "float32[2,1,2]<1>"}, "{pads=[2,2]}"), HasSubstr("the output is empty"));
  EXPECT_THAT(Both("ConvTranspose", {x, "float32[2,1,2]<1>"}, "{output_padding=[-1]}"), HasSubstr("-1 is outside of 0.."));
  EXPECT_EQ(Both("ConvTranspose", {"float32[0,1,2]<>", "float32[1,1,2]<1>"}), "float32[0,1,3]<>");
}

TEST(ConvInteger, TakesZeroPointsOff) {
  EXPECT_EQ(Both("ConvInteger", {"uint8[1,1,3]<2, 3, 4>", "int8[1,1,2]<1, -1>", "uint8[]<1>"}), "int32[1,1,2]<-1, -1>");
  EXPECT_EQ(Both("ConvInteger", {"uint8[1,1,1]<10>", "uint8[2,1,1]<5, 5>", "_", "uint8[2]<0, 5>"}), "int32[1,2,1]<50, 0>");
  // Padding counts as the zero point, that is as real zero.
  EXPECT_EQ(Both("ConvInteger", {"uint8[1,1,1]<4>", "uint8[1,1,3]<1>", "uint8[]<1>"}, "{pads=[1,1]}"), "int32[1,1,1]<3>");
  EXPECT_THAT(Both("ConvInteger", {"uint8[1,1,1]<4>", "uint8[1,1,1]<1>", "int8[]<1>"}), HasSubstr("must be the same"));
  EXPECT_THAT(Both("ConvInteger", {"uint8[1,1,1]<4>", "uint8[1,1,1]<1>", "uint8[2]<1>"}), HasSubstr("zero point of x"));
}

TEST(QLinearConv, RescalesAndSaturates) {
  auto run = [](const char* w_scale, const char* y_zero, const char* bias) {
    return Both("QLinearConv", {"uint8[1,1,2]<10, 200>", "float32[]<0.5>", "uint8[]<0>", "int8[2,1,1]<1, 2>", w_scale,
                                "int8[]<0>", "float32[]<1>", y_zero, bias});
  };
  EXPECT_EQ(run("float32[]<1>", "uint8[]<0>", "_"), "uint8[1,2,2]<5, 100, 10, 200>");
  EXPECT_EQ(run("float32[2]<1, 2>", "uint8[]<3>", "_"), "uint8[1,2,2]<8, 103, 23, 255>");
  EXPECT_EQ(run("float32[]<1>", "int8[]<0>", "int32[2]<0, -1000>"), "int8[1,2,2]<5, 100, -128, -128>");
  EXPECT_THAT(run("float32[3]<1>", "uint8[]<0>", "_"), HasSubstr("w_scale has shape [3]; it must be [2]"));
}

TEST(DeformConv, MovesTheTapsAndInterpolates) {
  const char *x = "float32[1,1,2,2]<1, 2, 3, 4>", *w = "float32[1,1,1,1]<1>";
  const char* half_row = "float32[1,2,2,2]<0.5, 0.5, 0.5, 0.5, 0, 0, 0, 0>";
  EXPECT_EQ(Both("DeformConv", {x, w, "float32[1,2,2,2]<0>"}), "float32[1,1,2,2]<1.0, 2.0, 3.0, 4.0>");
  EXPECT_EQ(Both("DeformConv", {x, w, half_row}), "float32[1,1,2,2]<2.0, 3.0, 1.5, 2.0>");
  EXPECT_EQ(Both("DeformConv", {x, w, half_row, "float32[1]<10>", "float32[1,1,2,2]<1, 0, 2, 1>"}),
            "float32[1,1,2,2]<12.0, 10.0, 13.0, 12.0>");
  EXPECT_EQ(Both("DeformConv", {"float32[1,1,3]<1, 2, 3>", "float32[1,1,2]<1, 10>", "float32[1,2,2]<0, 0, -0.5, 1>"}),
            "float32[1,1,2]<16.0, 2.0>");
}

TEST(DeformConv, GroupsHaveOffsetsOfTheirOwn) {
  EXPECT_EQ(Both("DeformConv", {"float64[1,2,2]<1, 2, 3, 4>", "float64[2,1,1]<1, 1>", "float64[1,2,2]<0, 0, 1, -1>"},
                 "{group=2, offset_group=2}"),
            "float64[1,2,2]<1.0, 2.0, 4.0, 3.0>");
  EXPECT_EQ(Both("DeformConv", {"float32[1,1,2]<1, 2>", "float32[1,1,1]<1>", "float32[1,1,2]<nan>"}),
            "float32[1,1,2]<0.0, 0.0>");
}

TEST(DeformConv, RefusesInputsThatDoNotFit) {
  const char *x = "float32[1,1,2,2]<1>", *w = "float32[1,1,1,1]<1>", *offset = "float32[1,2,2,2]<0>";
  EXPECT_THAT(Both("DeformConv", {x, w, "float32[1,2,2,1]<0>"}), HasSubstr("offset has shape [1,2,2,1]"));
  EXPECT_THAT(Both("DeformConv", {x, w, offset, "_", "float32[1,2,2,2]<1>"}), HasSubstr("mask has shape"));
  EXPECT_THAT(Both("DeformConv", {x, w, offset, "float32[2]<1>"}), HasSubstr("the bias has shape [2]"));
  EXPECT_THAT(Both("DeformConv", {x, w, offset}, "{offset_group=2}"),
              HasSubstr("offset_group = 2 must divide the 1 channels"));
}

TEST(CausalConvWithState, ReadsThePastAndReturnsTheNextOne) {
  const char *x = "float32[1,1,3]<1, 2, 3>", *w = "float32[1,1,2]<10, 1>", *past = "float32[1,1,1]<5>";
  EXPECT_EQ(Both("CausalConvWithState", {x, w}, "", 2, 0), "float32[1,1,3]<1.0, 12.0, 23.0>");
  EXPECT_EQ(Both("CausalConvWithState", {x, w, "float32[1]<0.5>", past}, "", 2, 0), "float32[1,1,3]<51.5, 12.5, 23.5>");
  EXPECT_EQ(Both("CausalConvWithState", {x, w, "_", past}, "", 2, 1), "float32[1,1,1]<3.0>");
  EXPECT_EQ(Both("CausalConvWithState", {"float32[1,1,1]<1>", "float32[1,1,3]<1>", "_", "float32[1,1,2]<5, 6>"}, "", 2, 1),
            "float32[1,1,2]<6.0, 1.0>");
  EXPECT_EQ(Both("CausalConvWithState", {"float32[1,2,1]<0, 0>", "float32[2,1,1]<1>"}, "{activation=\"silu\"}", 2, 0),
            "float32[1,2,1]<0.0, 0.0>");
}

TEST(CausalConvWithState, RefusesInputsThatDoNotFit) {
  const char *x = "float32[1,2,3]<1>", *w = "float32[2,1,2]<1>";
  EXPECT_THAT(Both("CausalConvWithState", {x, "float32[2,2,2]<1>"}, "", 2),
              HasSubstr("the weight [channels, 1, taps] has shape"));
  EXPECT_THAT(Both("CausalConvWithState", {x, w, "_", "float32[1,2,2]<1>"}, "", 2),
              HasSubstr("past_state has shape [1,2,2]"));
  EXPECT_THAT(Both("CausalConvWithState", {x, "float32[2,1,0]<>"}, "", 2), HasSubstr("has no taps"));
  EXPECT_THAT(Both("CausalConvWithState", {x, w}, "{activation=\"relu\"}", 2), HasSubstr("is not one of none, silu, swish"));
}

}  // namespace
}  // namespace mge
