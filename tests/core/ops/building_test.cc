// SPDX-License-Identifier: Apache-2.0
// Pad, Tile, Expand, Shape, Size, Constant, ConstantOfShape, Range, OneHot, EyeLike.
#include "tests/core/ops/both_ways.h"

namespace mge {
namespace {

using ::testing::HasSubstr;

TEST(Pad, HasFourModes) {
  const char* x = "int8[3]<1, 2, 3>";
  EXPECT_EQ(Both("Pad", {x, "int64[2]<1, 2>"}), "int8[6]<0, 1, 2, 3, 0, 0>");
  EXPECT_EQ(Both("Pad", {x, "int64[2]<1, 2>", "int8[]<9>"}), "int8[6]<9, 1, 2, 3, 9, 9>");
  EXPECT_EQ(Both("Pad", {x, "int64[2]<2, 3>"}, "{mode=\"reflect\"}"), "int8[8]<3, 2, 1, 2, 3, 2, 1, 2>");
  EXPECT_EQ(Both("Pad", {x, "int64[2]<1, 2>"}, "{mode=\"edge\"}"), "int8[6]<1, 1, 2, 3, 3, 3>");
  EXPECT_EQ(Both("Pad", {x, "int64[2]<1, 2>"}, "{mode=\"wrap\"}"), "int8[6]<3, 1, 2, 3, 1, 2>");
  EXPECT_EQ(Both("Pad", {"string[1]<\"a\">", "int64[2]<1, 0>"}), "string[2]<\"\", \"a\">");
  EXPECT_EQ(Both("Pad", {"int8[1]<4>", "int64[2]<1, 1>"}, "{mode=\"reflect\"}"), "int8[3]<4, 4, 4>");
}

TEST(Pad, CropsWithNegativePadsAndTakesAxes) {
  EXPECT_EQ(Both("Pad", {"int8[3]<1, 2, 3>", "int64[2]<-1, 1>"}), "int8[3]<2, 3, 0>");
  EXPECT_EQ(Both("Pad", {"int8[2,2]<1, 2, 3, 4>", "int64[2]<0, 1>", "_", "int64[1]<-1>"}), "int8[2,3]<1, 2, 0, 3, 4, 0>");
  EXPECT_EQ(Both("Pad", {"int8[2]<1, 2>", "int64[2]<-5, 6>"}), "int8[3]<0, 0, 0>");
}

TEST(Pad, ReadsTheAttributesOfOlderSets) {
  EXPECT_EQ(Both("Pad@2", {"float16[1]<1>"}, "{pads=[0,1], value=2.0}"), "float16[2]<1.0, 2.0>");
  EXPECT_EQ(Both("Pad@1", {"float32[1]<1>"}, "{paddings=[1,0]}"), "float32[2]<0.0, 1.0>");
}

TEST(Pad, RefusesImpossiblePads) {
  const char* x = "int8[3]<1, 2, 3>";
  EXPECT_THAT(Both("Pad", {x, "int64[2]<-2, -2>"}), HasSubstr("are not valid"));
  EXPECT_THAT(Both("Pad", {x, "int64[2]<9223372036854775807, 1>"}), HasSubstr("is too large"));
  EXPECT_THAT(Both("Pad", {x, "int64[3]<1, 1, 1>"}), HasSubstr("3 pads for 1 axes"));
  EXPECT_THAT(Both("Pad", {"int8[0]<>", "int64[2]<1, 1>"}, "{mode=\"edge\"}"), HasSubstr("no elements to repeat"));
  EXPECT_EQ(Both("Pad", {"int8[0]<>", "int64[2]<1, 1>"}), "int8[2]<0, 0>");
}

TEST(Tile, Repeats) {
  EXPECT_EQ(Both("Tile", {"int8[1,2]<1, 2>", "int64[2]<2, 2>"}), "int8[2,4]<1, 2, 1, 2, 1, 2, 1, 2>");
  EXPECT_EQ(Both("Tile", {"int8[2]<1, 2>", "int64[1]<0>"}), "int8[0]<>");
  EXPECT_EQ(Both("Tile", {"int8[]<1>", "int64[0]<>"}), "int8[]<1>");
  EXPECT_EQ(Both("Tile@1", {"float32[1,2]<1, 2>", "float32[]<2>", "float32[]<1>"}), "float32[1,4]<1.0, 2.0, 1.0, 2.0>");
  EXPECT_THAT(Both("Tile", {"int8[2]<1, 2>", "int64[1]<-1>"}), HasSubstr("negative"));
  EXPECT_THAT(Both("Tile", {"int8[2]<1, 2>", "int64[1]<9223372036854775807>"}), HasSubstr("size overflow"));
  EXPECT_THAT(Both("Tile", {"int8[2]<1, 2>", "int64[2]<1, 1>"}), HasSubstr("one for each dimension"));
}

TEST(Expand, BroadcastsBothWays) {
  EXPECT_EQ(Both("Expand", {"int8[2,1]<1, 2>", "int64[3]<2, 1, 2>"}), "int8[2,2,2]<1, 1, 2, 2, 1, 1, 2, 2>");
  EXPECT_EQ(Both("Expand", {"int8[1]<1>", "int64[1]<0>"}), "int8[0]<>");
  EXPECT_EQ(Both("Expand", {"int8[]<1>", "int64[0]<>"}), "int8[]<1>");
  EXPECT_THAT(Both("Expand", {"int8[2]<1, 2>", "int64[1]<3>"}), HasSubstr("cannot be broadcast"));
  EXPECT_THAT(Both("Expand", {"int8[2]<1, 2>", "int64[1]<-1>"}), HasSubstr("negative size -1"));
  EXPECT_THAT(Both("Expand", {"int8[1]<1>", "int64[2]<4611686018427387904, 4>"}), HasSubstr("size overflow"));
}

TEST(Shape, ListsSizesOrSomeOfThem) {
  EXPECT_EQ(Both("Shape", {"int8[2,0,4]<>"}), "int64[3]<2, 0, 4>");
  EXPECT_EQ(Both("Shape", {"int8[2,0,4]<>"}, "{start=-2, end=-1}"), "int64[1]<0>");
  EXPECT_EQ(Both("Shape", {"int8[2,0,4]<>"}, "{start=9}"), "int64[0]<>");
  EXPECT_EQ(Both("Shape", {"int8[]<1>"}), "int64[0]<>");
  EXPECT_EQ(Both("Size", {"int8[2,0,4]<>"}), "int64[]<0>");
  EXPECT_EQ(Both("Size", {"int8[]<1>"}), "int64[]<1>");
}

TEST(Shape, IsKnownBeforeTheRun) {
  auto graph = ParseGraphText(
      "input x : float32[2,3,4]\ns = Shape(x) {end=2}\nconst m = int64[1]<-1>\nt = Concat(s, m) {axis=0}\n"
      "y = Reshape(x, t)\noutput y\n");
  ASSERT_TRUE(graph.ok());
  ASSERT_TRUE(InferTypes(*graph).ok());
  EXPECT_EQ(graph->value(graph->outputs()[0]).type.ToString(), "float32[2,3,4]");
}

TEST(Constant, TakesEveryKindOfValue) {
  EXPECT_EQ(Both("Constant", {}, "{value=int8[2]<1, 2>}"), "int8[2]<1, 2>");
  EXPECT_EQ(Both("Constant", {}, "{value_float=1.5}"), "float32[]<1.5>");
  EXPECT_EQ(Both("Constant", {}, "{value_int=3}"), "int64[]<3>");
  EXPECT_EQ(Both("Constant", {}, "{value_ints=[3,4]}"), "int64[2]<3, 4>");
  EXPECT_EQ(Both("Constant", {}, "{value_floats=[3.5]}"), "float32[1]<3.5>");
  EXPECT_EQ(Both("Constant", {}, "{value_string=\"a\"}"), "string[]<\"a\">");
  EXPECT_EQ(Both("Constant", {}, "{value_strings=[\"a\",\"b\"]}"), "string[2]<\"a\", \"b\">");
  EXPECT_THAT(Both("Constant", {}), HasSubstr("must have exactly one"));
  EXPECT_THAT(Both("Constant", {}, "{value_int=3, value_float=1.0}"), HasSubstr("must have exactly one"));
}

TEST(ConstantOfShape, FillsWithZeroOrTheAttribute) {
  EXPECT_EQ(Both("ConstantOfShape", {"int64[2]<1, 2>"}), "float32[1,2]<0.0, 0.0>");
  EXPECT_EQ(Both("ConstantOfShape", {"int64[0]<>"}, "{value=int32[1]<7>}"), "int32[]<7>");
  EXPECT_EQ(Both("ConstantOfShape", {"int64[1]<0>"}), "float32[0]<>");
  EXPECT_THAT(Both("ConstantOfShape", {"int64[1]<-1>"}), HasSubstr("negative size -1"));
  EXPECT_THAT(Both("ConstantOfShape", {"int64[2]<4294967296, 4294967296>"}), HasSubstr("size overflow"));
  EXPECT_THAT(Both("ConstantOfShape", {"int64[1]<1>"}, "{value=int32[2]<7, 8>}"), HasSubstr("one element"));
}

TEST(Range, CountsUpAndDown) {
  EXPECT_EQ(Both("Range", {"int32[]<1>", "int32[]<6>", "int32[]<2>"}), "int32[3]<1, 3, 5>");
  EXPECT_EQ(Both("Range", {"int32[]<6>", "int32[]<1>", "int32[]<-2>"}), "int32[3]<6, 4, 2>");
  EXPECT_EQ(Both("Range", {"float32[]<1>", "float32[]<2>", "float32[]<0.5>"}), "float32[2]<1.0, 1.5>");
  EXPECT_EQ(Both("Range", {"int64[]<3>", "int64[]<1>", "int64[]<1>"}), "int64[0]<>");
  EXPECT_EQ(Both("Range", {"int64[]<9223372036854775806>", "int64[]<9223372036854775807>", "int64[]<9>"}),
            "int64[1]<9223372036854775806>");
}

TEST(Range, RefusesEndlessRanges) {
  EXPECT_THAT(Both("Range", {"int32[]<1>", "int32[]<6>", "int32[]<0>"}), HasSubstr("delta is 0"));
  EXPECT_THAT(Both("Range", {"float32[]<1>", "float32[]<inf>", "float32[]<1>"}), HasSubstr("size overflow"));
  EXPECT_THAT(Both("Range", {"float32[]<1>", "float32[]<nan>", "float32[]<1>"}), HasSubstr("not a number"));
  EXPECT_THAT(Both("Range", {"int64[]<-9223372036854775808>", "int64[]<9223372036854775807>", "int64[]<1>"}),
              HasSubstr("size overflow"));
}

TEST(OneHot, MarksTheIndex) {
  EXPECT_EQ(Both("OneHot", {"int64[2]<1, -1>", "int64[]<3>", "int8[2]<0, 5>"}), "int8[2,3]<0, 5, 0, 0, 0, 5>");
  EXPECT_EQ(Both("OneHot", {"int64[2]<1, 7>", "float32[1]<2>", "int8[2]<0, 5>"}, "{axis=0}"), "int8[2,2]<0, 0, 5, 0>");
  EXPECT_EQ(Both("OneHot@9", {"int64[2]<1, -1>", "int64[]<2>", "int8[2]<0, 5>"}), "int8[2,2]<0, 5, 0, 0>");
  EXPECT_EQ(Both("OneHot", {"int64[]<0>", "int64[]<1>", "string[2]<\"-\", \"+\">"}), "string[1]<\"+\">");
  EXPECT_EQ(Both("OneHot", {"int64[2]<0, 0>", "int64[]<0>", "int8[2]<0, 5>"}), "int8[2,0]<>");
  EXPECT_EQ(Both("OneHot", {"float32[1]<nan>", "int64[]<2>", "int8[2]<0, 5>"}), "int8[1,2]<0, 0>");
}

TEST(OneHot, RefusesNegativeAndHugeDepths) {
  for (const char* depth : {"int64[]<-1>", "int64[]<-9223372036854775808>", "float32[]<nan>", "float32[]<-inf>",
                            "float32[]<inf>", "uint64[]<18446744073709551615>"}) {
    EXPECT_THAT(Both("OneHot", {"int64[1]<0>", depth, "int8[2]<0, 1>"}), HasSubstr("error: depth is")) << depth;
  }
  EXPECT_THAT(Both("OneHot", {"int64[1]<0>", "int64[2]<1, 2>", "int8[2]<0, 1>"}), HasSubstr("depth has shape [2]"));
  EXPECT_THAT(Both("OneHot", {"int64[1]<0>", "int64[]<1>", "int8[3]<0, 1, 2>"}), HasSubstr("it must be [2]"));
  EXPECT_THAT(Both("OneHot", {"int64[1]<0>", "int64[]<1>", "int8[2]<0, 1>"}, "{axis=2}"), HasSubstr("axis 2"));
}

TEST(CenterCropPad, KeepsTheMiddle) {
  EXPECT_EQ(Both("CenterCropPad", {"int8[5]<1, 2, 3, 4, 5>", "int64[1]<2>"}), "int8[2]<2, 3>");
  EXPECT_EQ(Both("CenterCropPad", {"int8[2]<1, 2>", "int64[1]<5>"}), "int8[5]<0, 1, 2, 0, 0>");
  EXPECT_EQ(Both("CenterCropPad", {"int8[1,2]<1, 2>", "int32[1]<1>"}, "{axes=[-1]}"), "int8[1,1]<1>");
  EXPECT_EQ(Both("CenterCropPad", {"int8[0]<>", "int64[1]<2>"}), "int8[2]<0, 0>");
  EXPECT_THAT(Both("CenterCropPad", {"int8[2]<1, 2>", "int64[1]<-1>"}), HasSubstr("negative size -1"));
  EXPECT_THAT(Both("CenterCropPad", {"int8[2]<1, 2>", "int64[2]<1, 1>"}), HasSubstr("2 sizes for 1 axes"));
}

TEST(Col2Im, AddsBlocksWhereTheyOverlap) {
  EXPECT_EQ(Both("Col2Im", {"float32[1,2,2]<1, 2, 3, 4>", "int64[1]<3>", "int64[1]<2>"}), "float32[1,1,3]<1.0, 5.0, 4.0>");
  EXPECT_EQ(Both("Col2Im", {"int8[1,1,4]<1, 2, 3, 4>", "int64[2]<2, 2>", "int64[2]<1, 1>"}), "int8[1,1,2,2]<1, 2, 3, 4>");
  EXPECT_EQ(Both("Col2Im", {"int8[1,1,3]<1, 2, 3>", "int64[1]<1>", "int64[1]<1>"}, "{pads=[1,1]}"), "int8[1,1,1]<2>");
}

TEST(Col2Im, RefusesBlocksThatDoNotFitTheImage) {
  const char* x = "float32[1,2,2]<1, 2, 3, 4>";
  EXPECT_THAT(Both("Col2Im", {x, "int64[1]<3>", "int64[1]<4>"}), HasSubstr("does not fit into an image of 3"));
  EXPECT_THAT(Both("Col2Im", {x, "int64[1]<3>", "int64[1]<2>"}, "{strides=[0]}"), HasSubstr("stride 0"));
  EXPECT_THAT(Both("Col2Im", {x, "int64[1]<3>", "int64[1]<2>"}, "{pads=[9223372036854775807,1]}"),
              HasSubstr("does not fit"));
  EXPECT_THAT(Both("Col2Im", {x, "int64[1]<4>", "int64[1]<2>"}), HasSubstr("the number of blocks is 2; it must be 3"));
  EXPECT_THAT(Both("Col2Im", {x, "int64[2]<3, 3>", "int64[1]<2>"}), HasSubstr("do not match"));
}

TEST(EyeLike, PutsOnesOnADiagonal) {
  EXPECT_EQ(Both("EyeLike", {"int8[2,3]<0>"}, "{k=1}"), "int8[2,3]<0, 1, 0, 0, 0, 1>");
  EXPECT_EQ(Both("EyeLike", {"int8[2,2]<0>"}, "{k=-1, dtype=1}"), "float32[2,2]<0.0, 0.0, 1.0, 0.0>");
  EXPECT_EQ(Both("EyeLike", {"int8[1,1]<0>"}, "{k=-9223372036854775808}"), "int8[1,1]<0>");
  EXPECT_EQ(Both("EyeLike", {"int8[0,2]<>"}), "int8[0,2]<>");
  EXPECT_THAT(Both("EyeLike", {"int8[2]<0>"}), HasSubstr("its rank must be 2"));
}

}  // namespace
}  // namespace mge
