// SPDX-License-Identifier: Apache-2.0
// Reshape, Flatten, Squeeze, Unsqueeze, Transpose, Concat, Split, Slice, DepthToSpace, SpaceToDepth.
#include "tests/core/ops/both_ways.h"

namespace mge {
namespace {

using ::testing::HasSubstr;

const char* const kSix = "float32[2,3]<1, 2, 3, 4, 5, 6>";

TEST(Reshape, CopiesAndComputesSizes) {
  EXPECT_EQ(Both("Reshape", {kSix, "int64[2]<3, -1>"}), "float32[3,2]<1.0, 2.0, 3.0, 4.0, 5.0, 6.0>");
  EXPECT_EQ(Both("Reshape", {kSix, "int64[2]<0, -1>"}), "float32[2,3]<1.0, 2.0, 3.0, 4.0, 5.0, 6.0>");
  EXPECT_EQ(Both("Reshape@1", {"float32[2]<1, 2>"}, "{shape=[2,1]}"), "float32[2,1]<1.0, 2.0>");
}

TEST(Reshape, KeepsEmptyTensorsEmpty) {
  EXPECT_EQ(Both("Reshape", {"float32[0,5]<>", "int64[2]<0, -1>"}), "float32[0,5]<>");
  EXPECT_EQ(Both("Reshape", {"float32[0,5]<>", "int64[2]<7, 0>"}, "{allowzero=1}"), "float32[7,0]<>");
}

TEST(Reshape, MakesScalars) {
  EXPECT_EQ(Both("Reshape", {"float32[1]<7>", "int64[0]<>"}), "float32[]<7.0>");
  EXPECT_EQ(Both("Reshape", {"string[1]<\"a\">", "int64[0]<>"}), "string[]<\"a\">");
}

TEST(Reshape, RefusesInputsThatDoNotFit) {
  EXPECT_THAT(Both("Reshape", {kSix, "int64[1]<7>"}), HasSubstr("[2,3] cannot become [7]"));
  EXPECT_THAT(Both("Reshape", {kSix, "int64[2]<4, -1>"}), HasSubstr("no size is valid for -1"));
  EXPECT_THAT(Both("Reshape", {kSix, "int64[2]<-1, -1>"}), HasSubstr("more than one -1"));
  EXPECT_THAT(Both("Reshape", {kSix, "int64[2]<-2, 3>"}), HasSubstr("negative size -2"));
  EXPECT_THAT(Both("Reshape", {kSix, "int64[3]<1, 1, 0>"}), HasSubstr("has only 2"));
  EXPECT_THAT(Both("Reshape", {kSix, "int64[2]<9223372036854775807, 9223372036854775807>"}), HasSubstr("size overflow"));
  EXPECT_THAT(Both("Reshape", {kSix, "int64[2]<0, -1>"}, "{allowzero=1}"), HasSubstr("allowzero"));
}

TEST(Flatten, CutsAtTheAxis) {
  EXPECT_EQ(Both("Flatten", {kSix}, "{axis=0}"), "float32[1,6]<1.0, 2.0, 3.0, 4.0, 5.0, 6.0>");
  EXPECT_EQ(Both("Flatten", {kSix}, "{axis=-1}"), "float32[2,3]<1.0, 2.0, 3.0, 4.0, 5.0, 6.0>");
  EXPECT_EQ(Both("Flatten", {"int8[]<5>"}, "{axis=0}"), "int8[1,1]<5>");
  EXPECT_EQ(Both("Flatten", {"int8[2,0,3]<>"}), "int8[2,0]<>");
  EXPECT_THAT(Both("Flatten", {kSix}, "{axis=3}"), HasSubstr("axis 3 is outside of [-2, 2]"));
}

TEST(Squeeze, RemovesOnes) {
  EXPECT_EQ(Both("Squeeze", {"int8[1,2,1]<5, 6>"}), "int8[2]<5, 6>");
  EXPECT_EQ(Both("Squeeze", {"int8[1,2,1]<5, 6>", "int64[1]<-1>"}), "int8[1,2]<5, 6>");
  EXPECT_EQ(Both("Squeeze@11", {"int8[1,2,1]<5, 6>"}, "{axes=[0]}"), "int8[2,1]<5, 6>");
  EXPECT_THAT(Both("Squeeze", {"int8[1,2,1]<5, 6>", "int64[1]<1>"}), HasSubstr("axis 1 of [1,2,1] has size 2"));
  EXPECT_EQ(Both("Squeeze", {"int8[1,1]<5>", "int64[2]<0, -2>"}), "int8[1]<5>");
}

TEST(Unsqueeze, AddsOnesAtTheAxesOfTheResult) {
  EXPECT_EQ(Both("Unsqueeze", {"int8[2]<5, 6>", "int64[2]<-1, 0>"}), "int8[1,2,1]<5, 6>");
  EXPECT_EQ(Both("Unsqueeze@1", {"int8[]<5>"}, "{axes=[0]}"), "int8[1]<5>");
  EXPECT_THAT(Both("Unsqueeze", {"int8[2]<5, 6>", "int64[1]<2>"}), HasSubstr("axis 2 is outside of [-2, 2)"));
  EXPECT_THAT(Both("Unsqueeze", {"int8[2]<5, 6>", "int64[2]<0, -3>"}), HasSubstr("given twice"));
}

TEST(Transpose, PermutesAndReverses) {
  EXPECT_EQ(Both("Transpose", {kSix}), "float32[3,2]<1.0, 4.0, 2.0, 5.0, 3.0, 6.0>");
  EXPECT_EQ(Both("Transpose", {"string[1,2]<\"a\", \"b\">"}, "{perm=[1,0]}"), "string[2,1]<\"a\", \"b\">");
  EXPECT_EQ(Both("Transpose", {"int64[]<3>"}), "int64[]<3>");
  EXPECT_EQ(Both("Transpose", {"int64[3,0]<>"}), "int64[0,3]<>");
  for (const char* bad : {"{perm=[0]}", "{perm=[0,0]}", "{perm=[0,2]}", "{perm=[0,9223372036854775807]}"}) {
    EXPECT_THAT(Both("Transpose", {kSix}, bad), HasSubstr("is not a permutation of 2 axes")) << bad;
  }
}

TEST(Concat, JoinsAlongTheAxis) {
  EXPECT_EQ(Both("Concat", {"int8[2,1]<1, 2>", "int8[2,2]<3, 4, 5, 6>"}, "{axis=-1}"), "int8[2,3]<1, 3, 4, 2, 5, 6>");
  EXPECT_EQ(Both("Concat@1", {"int8[1,1]<1>", "int8[1,1]<2>"}), "int8[1,2]<1, 2>");
  EXPECT_EQ(Both("Concat", {"int8[0]<>", "int8[1]<2>"}, "{axis=0}"), "int8[1]<2>");
}

TEST(Concat, RefusesInputsThatDoNotFit) {
  EXPECT_THAT(Both("Concat", {"int8[1,2]<1>", "int8[1,3]<1>"}, "{axis=0}"), HasSubstr("does not match"));
  EXPECT_THAT(Both("Concat", {"int8[1]<1>", "int8[1,1]<1>"}, "{axis=0}"), HasSubstr("does not match"));
  EXPECT_THAT(Both("Concat", {"int8[1]<1>", "int16[1]<1>"}, "{axis=0}"), HasSubstr("int16"));
  EXPECT_THAT(Both("Concat", {"int8[]<1>"}, "{axis=0}"), HasSubstr("axis 0 is outside of [0, 0)"));
  EXPECT_THAT(Both("Concat", {}, "{axis=0}"), HasSubstr("no input"));
}

TEST(Split, CutsEvenlyUnevenlyAndByLength) {
  EXPECT_EQ(Both("Split", {"int8[4]<1, 2, 3, 4>"}, "", 2, 1), "int8[2]<3, 4>");
  EXPECT_EQ(Both("Split", {"int8[5]<1, 2, 3, 4, 5>"}, "{num_outputs=2}", 2, 1), "int8[2]<4, 5>");
  EXPECT_EQ(Both("Split", {"int8[5]<1, 2, 3, 4, 5>"}, "{num_outputs=4}", 4, 3), "int8[0]<>");
  EXPECT_EQ(Both("Split", {"int8[3]<1, 2, 3>", "int64[2]<3, 0>"}, "", 2, 1), "int8[0]<>");
  EXPECT_EQ(Both("Split@2", {"int8[2,3]<1, 2, 3, 4, 5, 6>"}, "{axis=1, split=[1,2]}", 2, 1), "int8[2,2]<2, 3, 5, 6>");
}

TEST(Split, RefusesWrongLengths) {
  EXPECT_THAT(Both("Split", {"int8[5]<1>"}, "", 2), HasSubstr("cannot be split into 2 equal parts"));
  EXPECT_THAT(Both("Split", {"int8[3]<1>", "int64[2]<1, 1>"}, "", 2), HasSubstr("add up to 2, but the dimension has 3"));
  EXPECT_THAT(Both("Split", {"int8[3]<1>", "int64[2]<4, -1>"}, "", 2), HasSubstr("are not valid sizes"));
  EXPECT_THAT(Both("Split", {"int8[3]<1>"}, "{num_outputs=2}", 3), HasSubstr("num_outputs is 2"));
}

TEST(Slice, FollowsPython) {
  const char* five = "int8[5]<0, 1, 2, 3, 4>";
  EXPECT_EQ(Both("Slice", {five, "int64[1]<1>", "int64[1]<-1>"}), "int8[3]<1, 2, 3>");
  EXPECT_EQ(Both("Slice", {five, "int64[1]<-1>", "int64[1]<-9223372036854775808>", "int64[1]<0>", "int64[1]<-2>"}),
            "int8[3]<4, 2, 0>");
  EXPECT_EQ(Both("Slice", {five, "int32[1]<0>", "int32[1]<2147483647>", "int32[1]<-1>", "int32[1]<3>"}), "int8[2]<0, 3>");
  EXPECT_EQ(Both("Slice", {five, "int64[1]<7>", "int64[1]<9>"}), "int8[0]<>");
  EXPECT_EQ(Both("Slice", {five, "int64[1]<1>", "int64[1]<5>", "_", "int64[1]<9223372036854775807>"}), "int8[1]<1>");
  EXPECT_EQ(Both("Slice", {five, "int64[1]<3>", "int64[1]<-9>", "_", "int64[1]<-9223372036854775808>"}), "int8[1]<3>");
  EXPECT_EQ(Both("Slice", {"int8[0]<>", "int64[1]<0>", "int64[1]<5>", "_", "int64[1]<-1>"}), "int8[0]<>");
  EXPECT_EQ(Both("Slice@1", {kSix}, "{axes=[1], starts=[0], ends=[2]}"), "float32[2,2]<1.0, 2.0, 4.0, 5.0>");
  EXPECT_EQ(Both("Slice", {"string[2]<\"a\", \"b\">", "int64[1]<1>", "int64[1]<0>", "_", "int64[1]<-1>"}),
            "string[1]<\"b\">");
}

TEST(Slice, RefusesBadAxesAndSteps) {
  EXPECT_THAT(Both("Slice", {kSix, "int64[1]<0>", "int64[1]<1>", "_", "int64[1]<0>"}), HasSubstr("step is 0"));
  EXPECT_THAT(Both("Slice", {kSix, "int64[1]<0>", "int64[1]<1>", "int64[1]<2>"}), HasSubstr("axis 2 is outside"));
  EXPECT_THAT(Both("Slice", {kSix, "int64[2]<0>", "int64[2]<1>", "int64[2]<0, -2>"}), HasSubstr("given twice"));
  EXPECT_THAT(Both("Slice", {kSix, "int64[2]<0>", "int64[1]<1>"}), HasSubstr("do not match"));
  EXPECT_THAT(Both("Slice", {"int8[]<1>", "int64[1]<0>", "int64[1]<1>"}), HasSubstr("do not match"));
}

TEST(DepthToSpace, IsUndoneBySpaceToDepthInBothOrders) {
  const char* x = "int8[1,4,1,2]<0, 1, 2, 3, 4, 5, 6, 7>";
  EXPECT_EQ(Both("DepthToSpace", {x}, "{blocksize=2}"), "int8[1,1,2,4]<0, 2, 1, 3, 4, 6, 5, 7>");
  EXPECT_EQ(Both("SpaceToDepth", {"int8[1,1,2,4]<0, 2, 1, 3, 4, 6, 5, 7>"}, "{blocksize=2}"),
            "int8[1,4,1,2]<0, 1, 2, 3, 4, 5, 6, 7>");
  // With two channels, the orders differ.
  const char* deep = "int8[1,8,1,1]<0, 1, 2, 3, 4, 5, 6, 7>";
  for (const auto& [mode, wide] :
       {std::pair{"DCR", "int8[1,2,2,2]<0, 2, 4, 6, 1, 3, 5, 7>"}, {"CRD", "int8[1,2,2,2]<0, 1, 2, 3, 4, 5, 6, 7>"}}) {
    const std::string attrs = fmt::format("{{blocksize=2, mode=\"{}\"}}", mode);
    EXPECT_EQ(Both("DepthToSpace", {deep}, attrs), wide);
    EXPECT_EQ(Both("SpaceToDepth", {wide}, attrs), deep);
  }
  EXPECT_THAT(Both("DepthToSpace", {x}, "{blocksize=3}"), HasSubstr("not a multiple of 9"));
  EXPECT_THAT(Both("DepthToSpace", {x}, "{blocksize=0}"), HasSubstr("blocksize 0 is out of range"));
  EXPECT_THAT(Both("SpaceToDepth", {x}, "{blocksize=4294967296}"), HasSubstr("blocksize 4294967296 is out of range"));
  EXPECT_THAT(Both("SpaceToDepth", {x}, "{blocksize=2}"), HasSubstr("not a multiple of blocksize 2"));
}

}  // namespace
}  // namespace mge
