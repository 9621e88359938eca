// SPDX-License-Identifier: Apache-2.0
// MaxPool, AveragePool, LpPool, their global forms, MaxUnpool, MaxRoiPool, RoiAlign.
#include "tests/core/ops/both_ways.h"

namespace mge {
namespace {

using ::testing::HasSubstr;

TEST(MaxPool, GivesTheLargestElement) {
  EXPECT_EQ(Both("MaxPool", {"float32[1,1,4]<1, 4, 2, 3>"}, "{kernel_shape=[2]}"), "float32[1,1,3]<4.0, 4.0, 3.0>");
  EXPECT_EQ(Both("MaxPool", {"int8[1,1,3]<-5, -6, -7>"}, "{kernel_shape=[2], pads=[1,1]}"), "int8[1,1,4]<-5, -5, -6, -7>");
  EXPECT_EQ(Both("MaxPool", {"float32[1,1,5]<1, 9, 2, 8, 3>"}, "{kernel_shape=[2], dilations=[2], strides=[2]}"),
            "float32[1,1,2]<2.0, 3.0>");
  EXPECT_EQ(Both("MaxPool", {"float32[1,1,3]<1, nan, 2>"}, "{kernel_shape=[2]}"), "float32[1,1,2]<nan, nan>");
}

TEST(MaxPool, GivesTheIndexOfTheLargestElement) {
  const std::string x = "float32[1,2,2,3]<1, 2, 3, 6, 5, 4, 0, 0, 9, 0, 0, 0>";
  EXPECT_EQ(RunOp("MaxPool", {x}, "{kernel_shape=[2,3]}", 2, 1), "int64[1,2,1,1]<3, 8>");
  // The first axis varies fastest: row 1, column 0 is index 1; row 0, column 2 is index 4.
  EXPECT_EQ(RunOp("MaxPool", {x}, "{kernel_shape=[2,3], storage_order=1}", 2, 1), "int64[1,2,1,1]<1, 10>");
  EXPECT_THAT(Both("MaxPool", {x}, "{kernel_shape=[2,3], storage_order=2}"), HasSubstr("must be 0 or 1"));
}

TEST(MaxPool, RefusesBadWindows) {
  const char* x = "float32[1,1,4]<1>";
  EXPECT_THAT(Both("MaxPool", {x}), HasSubstr("kernel_shape"));
  EXPECT_THAT(Both("MaxPool", {x}, "{kernel_shape=[0]}"), HasSubstr("0 is outside of 1.."));
  EXPECT_THAT(Both("MaxPool", {x}, "{kernel_shape=[5]}"), HasSubstr("does not fit"));
  EXPECT_THAT(Both("MaxPool", {x}, "{kernel_shape=[2], pads=[2,0]}"), HasSubstr("must be smaller than the window"));
  EXPECT_THAT(Both("MaxPool", {x}, "{kernel_shape=[2], strides=[0]}"), HasSubstr("strides = [0]"));
  EXPECT_THAT(Both("MaxPool", {"float32[4,4]<1>"}, "{kernel_shape=[2]}"), HasSubstr("rank must be at least 3"));
  EXPECT_EQ(Both("MaxPool", {"float32[0,1,4]<>"}, "{kernel_shape=[2]}"), "float32[0,1,3]<>");
}

TEST(MaxPool, UsesOnlyExistingElementsOfAPartialWindowInCeilMode) {
  const char* x = "float32[1,1,4]<-1, 0, 1, 2>";
  EXPECT_EQ(Both("MaxPool", {x}, "{kernel_shape=[5], strides=[2], ceil_mode=1}"), "float32[1,1,1]<2.0>");
  EXPECT_EQ(Both("AveragePool", {x}, "{kernel_shape=[5], strides=[2], ceil_mode=1}"), "float32[1,1,1]<0.5>");
  EXPECT_EQ(Both("MaxPool", {x}, "{kernel_shape=[5], ceil_mode=1}"), "float32[1,1,0]<>");
  EXPECT_THAT(Both("MaxPool", {"float32[1,1,0]<>"}, "{kernel_shape=[2], pads=[1,1]}"), HasSubstr("nothing to pool"));
}

TEST(AveragePool, CountsPaddingWhenAsked) {
  const char* x = "float32[1,1,3]<2, 4, 6>";
  EXPECT_EQ(Both("AveragePool", {x}, "{kernel_shape=[2], pads=[1,1]}"), "float32[1,1,4]<2.0, 3.0, 5.0, 6.0>");
  EXPECT_EQ(Both("AveragePool", {x}, "{kernel_shape=[2], pads=[1,1], count_include_pad=1}"),
            "float32[1,1,4]<1.0, 3.0, 5.0, 3.0>");
}

TEST(AveragePool, DoesNotCountPositionsThatCeilModeAdds) {
  const char* x = "float32[1,1,4]<2, 4, 6, 8>";
  EXPECT_EQ(Both("AveragePool", {x}, "{kernel_shape=[3], strides=[2], ceil_mode=1, count_include_pad=1}"),
            "float32[1,1,2]<4.0, 7.0>");
  EXPECT_EQ(Both("AveragePool", {x}, "{kernel_shape=[3], strides=[2], ceil_mode=1, pads=[1,0], count_include_pad=1}"),
            "float32[1,1,2]<2.0, 6.0>");
}

TEST(LpPool, ComputesTheNorm) {
  EXPECT_EQ(Both("LpPool", {"float64[1,1,2]<3, -4>"}, "{kernel_shape=[2]}"), "float64[1,1,1]<5.0>");
  EXPECT_EQ(Both("LpPool", {"float32[1,1,2]<3, -4>"}, "{kernel_shape=[2], p=1}"), "float32[1,1,1]<7.0>");
  EXPECT_EQ(Both("LpPool@1", {"float32[1,1,2]<3, -4>"}, "{kernel_shape=[2], p=1.0}"), "float32[1,1,1]<7.0>");
  EXPECT_THAT(Both("LpPool@1", {"float32[1,1,2]<3, -4>"}, "{kernel_shape=[2], p=1.5}"), HasSubstr("p = 1.5"));
  EXPECT_THAT(Both("LpPool", {"float32[1,1,2]<3, -4>"}, "{kernel_shape=[2], p=0}"), HasSubstr("p = 0"));
}

TEST(GlobalPools, ReduceAllSpatialAxes) {
  const char* x = "float32[1,2,2,2]<1, 2, 3, 6, -3, 0, 4, 0>";
  EXPECT_EQ(Both("GlobalAveragePool", {x}), "float32[1,2,1,1]<3.0, 0.25>");
  EXPECT_EQ(Both("GlobalMaxPool", {x}), "float32[1,2,1,1]<6.0, 4.0>");
  EXPECT_EQ(Both("GlobalLpPool", {"float64[1,1,2]<3, -4>"}), "float64[1,1,1]<5.0>");
  EXPECT_EQ(Both("GlobalAveragePool", {"float32[0,2,3]<>"}), "float32[0,2,1]<>");
  EXPECT_THAT(Both("GlobalMaxPool", {"float32[1,2,0]<>"}), HasSubstr("nothing to pool"));
  EXPECT_THAT(Both("GlobalMaxPool", {"float32[1]<1>"}), HasSubstr("rank must be 2"));
}

TEST(MaxUnpool, PutsMaximaAtTheirIndices) {
  const char* x = "float32[1,1,2]<5, 7>";
  EXPECT_EQ(Both("MaxUnpool", {x, "int64[1,1,2]<1, 2>"}, "{kernel_shape=[2], strides=[2]}"),
            "float32[1,1,4]<0.0, 5.0, 7.0, 0.0>");
  EXPECT_EQ(Both("MaxUnpool", {x, "int64[1,1,2]<1, 2>", "int64[3]<1, 1, 5>"}, "{kernel_shape=[2], strides=[2]}"),
            "float32[1,1,5]<0.0, 5.0, 7.0, 0.0, 0.0>");
  EXPECT_THAT(Both("MaxUnpool", {x, "int64[1,1,2]<1, 4>"}, "{kernel_shape=[2], strides=[2]}"),
              HasSubstr("index 4 is outside of the 4 elements"));
  EXPECT_THAT(Both("MaxUnpool", {x, "int64[1,1,2]<1, -1>"}, "{kernel_shape=[2], strides=[2]}"), HasSubstr("index -1"));
  EXPECT_THAT(Both("MaxUnpool", {x, "int64[1,1,1]<1>"}, "{kernel_shape=[2]}"), HasSubstr("the tensor of indices"));
  EXPECT_THAT(Both("MaxUnpool", {x, "int64[1,1,2]<1>", "int64[3]<1, 1, 3>"}, "{kernel_shape=[2], strides=[2]}"),
              HasSubstr("is smaller than the unpooled shape"));
}

TEST(MaxRoiPool, PoolsEveryBin) {
  const std::string x = "float32[1,1,4,4]<1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16>";
  EXPECT_EQ(Both("MaxRoiPool", {x, "float32[1,5]<0, 0, 0, 3, 3>"}, "{pooled_shape=[2,2]}"),
            "float32[1,1,2,2]<6.0, 8.0, 14.0, 16.0>");
  EXPECT_EQ(Both("MaxRoiPool", {x, "float32[1,5]<0, 9, 9, 9, 9>"}, "{pooled_shape=[1,1]}"), "float32[1,1,1,1]<0.0>");
  EXPECT_THAT(Both("MaxRoiPool", {x, "float32[1,5]<1, 0, 0, 3, 3>"}, "{pooled_shape=[2,2]}"), HasSubstr("image 1"));
  EXPECT_THAT(Both("MaxRoiPool", {x, "float32[1,5]<nan, 0, 0, 3, 3>"}, "{pooled_shape=[2,2]}"), HasSubstr("image nan"));
  EXPECT_THAT(Both("MaxRoiPool", {x, "float32[1,5]<0, 0, 0, inf, 3>"}, "{pooled_shape=[2,2]}"), HasSubstr("not finite"));
  EXPECT_THAT(Both("MaxRoiPool", {x, "float32[1,5]<0>"}, "{pooled_shape=[0,2]}"), HasSubstr("pooled_shape"));
}

TEST(RoiAlign, SamplesBetweenElements) {
  const std::string x = "float32[1,1,2,2]<0, 1, 2, 3>";
  EXPECT_EQ(Both("RoiAlign", {x, "float32[1,4]<0, 0, 2, 2>", "int64[1]<0>"}, "{sampling_ratio=1}"), "float32[1,1,1,1]<1.5>");
  EXPECT_EQ(Both("RoiAlign@10", {x, "float32[1,4]<0, 0, 1, 1>", "int64[1]<0>"}, "{sampling_ratio=1}"),
            "float32[1,1,1,1]<1.5>");
  EXPECT_EQ(Both("RoiAlign", {x, "float32[0,4]<>", "int64[0]<>"}), "float32[0,1,1,1]<>");
}

TEST(RoiAlign, RefusesBadRegions) {
  const std::string x = "float32[1,1,2,2]<0, 1, 2, 3>";
  EXPECT_THAT(Both("RoiAlign", {x, "float32[1,4]<0>", "int64[1]<1>"}), HasSubstr("batch_indices[0] = 1"));
  EXPECT_THAT(Both("RoiAlign", {x, "float32[1,4]<0, 0, 1e30, 1>", "int64[1]<0>"}), HasSubstr("sample points"));
  EXPECT_THAT(Both("RoiAlign", {x, "float32[1,4]<0, 0, nan, 1>", "int64[1]<0>"}), HasSubstr("sample points"));
  EXPECT_THAT(Both("RoiAlign", {x, "float32[1,4]<0>", "int64[1]<0>"}, "{mode=\"min\"}"), HasSubstr("not one of avg, max"));
  EXPECT_THAT(Both("RoiAlign", {x, "float32[1,4]<0>", "int64[2]<0>"}), HasSubstr("batch_indices"));
}

}  // namespace
}  // namespace mge
