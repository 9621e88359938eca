// SPDX-License-Identifier: Apache-2.0
// Resize, Upsample, GridSample, AffineGrid.
#include "tests/core/ops/both_ways.h"

namespace mge {
namespace {

using ::testing::HasSubstr;

std::string Scaled(const char* x, const char* scales, std::string_view rest) {
  return Both("Resize", {x, "_", scales}, rest);
}
std::string Sized(const char* x, const char* sizes, std::string_view rest) {
  return Both("Resize", {x, "_", "_", sizes}, rest);
}

TEST(Resize, CopiesTheNearestElementOfAnyType) {
  EXPECT_EQ(Scaled("int32[2]<1, 2>", "float32[1]<2>", ""), "int32[4]<1, 1, 2, 2>");
  EXPECT_EQ(Scaled("string[2]<\"a\", \"b\">", "float32[1]<1.5>",
                   "{coordinate_transformation_mode=\"asymmetric\", "
                   "nearest_mode=\"floor\"}"),
            "string[3]<\"a\", \"a\", \"b\">");
  EXPECT_EQ(Scaled("bool[2]<true, false>", "float32[1]<0.5>", ""), "bool[1]<true>");
  const char* mode = "{{coordinate_transformation_mode=\"asymmetric\", nearest_mode=\"{}\"}}";
  EXPECT_EQ(Scaled("int8[2]<1, 2>", "float32[1]<2>", fmt::format(fmt::runtime(mode), "ceil")), "int8[4]<1, 2, 2, 2>");
  EXPECT_EQ(Scaled("int8[2]<1, 2>", "float32[1]<2>", fmt::format(fmt::runtime(mode), "round_prefer_ceil")),
            "int8[4]<1, 2, 2, 2>");
  EXPECT_EQ(Scaled("int8[2]<1, 2>", "float32[1]<2>", fmt::format(fmt::runtime(mode), "round_prefer_floor")),
            "int8[4]<1, 1, 2, 2>");
}

TEST(Resize, InterpolatesInEveryCoordinateSystem) {
  auto linear = [](std::string_view mode) {
    return Sized("float64[2]<0, 4>", "int64[1]<4>",
                 fmt::format("{{mode=\"linear\", coordinate_transformation_mode=\"{}\"}}", mode));
  };
  EXPECT_EQ(linear("half_pixel"), "float64[4]<0.0, 1.0, 3.0, 4.0>");
  EXPECT_EQ(linear("pytorch_half_pixel"), "float64[4]<0.0, 1.0, 3.0, 4.0>");
  EXPECT_EQ(linear("half_pixel_symmetric"), "float64[4]<0.0, 1.0, 3.0, 4.0>");
  EXPECT_EQ(linear("asymmetric"), "float64[4]<0.0, 2.0, 4.0, 4.0>");
  EXPECT_EQ(Sized("float32[2]<0, 3>", "int64[1]<4>", "{mode=\"linear\", coordinate_transformation_mode=\"align_corners\"}"),
            "float32[4]<0.0, 1.0, 2.0, 3.0>");
  EXPECT_THAT(linear("sideways"), HasSubstr("\"sideways\" is not one of half_pixel"));
}

TEST(Resize, CropsARegion) {
  const char* rest =
      "{mode=\"linear\", coordinate_transformation_mode=\"tf_crop_and_resize\", "
      "extrapolation_value=9.0}";
  EXPECT_EQ(Both("Resize", {"float32[3]<0, 2, 4>", "float32[2]<0.5, 1.5>", "_", "int64[1]<3>"}, rest),
            "float32[3]<2.0, 4.0, 9.0>");
  EXPECT_THAT(Both("Resize", {"float32[3]<0, 2, 4>", "_", "_", "int64[1]<3>"}, rest), HasSubstr("requires input roi"));
  EXPECT_EQ(Both("Resize", {"int8[3]<0, 2, 4>", "float32[2]<0.5, 1.5>", "_", "int64[1]<3>"},
                 "{coordinate_transformation_mode=\"tf_crop_and_resize\", extrapolation_value=9.0}"),
            "int8[3]<2, 4, 9>");
}

TEST(Resize, RoundsAndSaturatesIntegers) {
  EXPECT_EQ(Sized("uint8[2]<0, 255>", "int64[1]<4>", "{mode=\"linear\"}"), "uint8[4]<0, 64, 191, 255>");
  EXPECT_EQ(Sized("uint8[4]<0, 0, 255, 255>", "int64[1]<8>", "{mode=\"cubic\"}"),
            "uint8[8]<0, 0, 0, 58, 197, 255, 255, 255>");
}

TEST(Resize, AveragesWhenAntialiasing) {
  EXPECT_EQ(Sized("float64[4]<0, 4, 4, 0>", "int64[1]<2>", "{mode=\"linear\", antialias=1}"), "float64[2]<2.0, 2.0>");
  EXPECT_THAT(Sized("float64[4]<0>", "int64[1]<2>", "{antialias=1}"), HasSubstr("needs mode linear or cubic"));
}

TEST(Resize, NamesAxesAndKeepsTheAspectRatio) {
  const char* x = "float32[1,2,4]<1>";
  EXPECT_THAT(Sized(x, "int64[2]<4, 4>", "{axes=[1,-1], keep_aspect_ratio_policy=\"not_larger\"}"),
              HasSubstr("float32[1,2,4]"));
  EXPECT_THAT(Sized(x, "int64[2]<4, 4>", "{axes=[2,1], keep_aspect_ratio_policy=\"not_smaller\"}"),
              HasSubstr("float32[1,4,8]"));
  EXPECT_THAT(Sized(x, "int64[2]<4, 4>", "{axes=[1,1]}"), HasSubstr("names axis 1 twice"));
  EXPECT_THAT(Sized(x, "int64[2]<4, 4>", "{axes=[1,3]}"), HasSubstr("axis 3 is outside"));
}

TEST(Resize, ReadsOlderSets) {
  EXPECT_EQ(Both("Resize@10", {"float32[2]<1, 2>", "float32[1]<2>"}), "float32[4]<1.0, 1.0, 2.0, 2.0>");
  EXPECT_EQ(Both("Resize@10", {"float32[2]<0, 2>", "float32[1]<2>"}, "{mode=\"linear\"}"), "float32[4]<0.0, 1.0, 2.0, 2.0>");
  EXPECT_EQ(Both("Resize@11", {"int8[2]<1, 2>", "float32[0]<>", "float32[0]<>", "int64[1]<4>"}), "int8[4]<1, 1, 2, 2>");
  EXPECT_EQ(Both("Upsample@7", {"int8[1,2]<1, 2>"}, "{scales=[1.0,2.0]}"), "int8[1,4]<1, 1, 2, 2>");
  EXPECT_EQ(Both("Upsample@1", {"float32[1,1,1,2]<1, 2>"}, "{height_scale=2.0, width_scale=1.0}"),
            "float32[1,1,2,2]<1.0, 2.0, 1.0, 2.0>");
  EXPECT_EQ(Both("Upsample@9", {"float32[2]<0, 2>", "float32[1]<2>"}, "{mode=\"linear\"}"),
            "float32[4]<0.0, 1.0, 2.0, 2.0>");
  EXPECT_THAT(Both("Upsample@10", {"float32[2]<0, 2>", "float32[1]<2>"}), HasSubstr("up to operator set 9"));
}

TEST(Resize, RefusesImpossibleSizes) {
  const char* x = "float32[2]<1>";
  EXPECT_THAT(Both("Resize", {x}), HasSubstr("neither scales nor sizes"));
  EXPECT_THAT(Both("Resize", {x, "_", "float32[1]<1>", "int64[1]<1>"}), HasSubstr("both scales and sizes"));
  for (const char* bad : {"float32[1]<0>", "float32[1]<-1>", "float32[1]<nan>", "float32[1]<inf>"}) {
    EXPECT_THAT(Scaled(x, bad, ""), HasSubstr("is not a positive number")) << bad;
  }
  EXPECT_THAT(Scaled(x, "float32[1]<1e30>", ""), HasSubstr("too large"));
  EXPECT_THAT(Scaled(x, "float32[2]<1>", ""), HasSubstr("the number of values in scales is 2; it must be 1"));
  EXPECT_THAT(Sized(x, "int64[1]<-1>", ""), HasSubstr("sizes[0] = -1"));
  EXPECT_THAT(Sized("float32[0]<>", "int64[1]<2>", ""), HasSubstr("cannot be resized to 2"));
  EXPECT_EQ(Scaled("float32[0,2]<>", "float32[2]<1, 2>", ""), "float32[0,4]<>");
  EXPECT_EQ(Sized(x, "int64[1]<0>", ""), "float32[0]<>");
  EXPECT_THAT(Scaled("string[2]<\"a\">", "float32[1]<2>", "{mode=\"linear\"}"), HasSubstr("interpolating string"));
}

TEST(GridSample, InterpolatesBetweenElements) {
  const char* x = "float32[1,1,1,3]<0, 2, 4>";
  EXPECT_EQ(Both("GridSample", {x, "float32[1,1,3,2]<-1, 0, 0.5, 0, 1, 0>"}, "{align_corners=1}"),
            "float32[1,1,1,3]<0.0, 3.0, 4.0>");
  EXPECT_EQ(Both("GridSample@16", {x, "float32[1,1,1,2]<0, 0>"}, "{mode=\"bicubic\"}"), "float32[1,1,1,1]<2.0>");
  EXPECT_EQ(Both("GridSample", {"int8[1,1,3]<1, 2, 3>", "float32[1,2,1]<-0.9, 0.9>"}, "{mode=\"nearest\"}"),
            "int8[1,1,2]<1, 3>");
}

TEST(GridSample, PadsThreeWays) {
  auto outside = [](std::string_view padding) {
    return Both("GridSample", {"float32[1,1,3]<1, 2, 3>", "float32[1,4,1]<-9, 9, nan, inf>"},
                fmt::format("{{padding_mode=\"{}\"}}", padding));
  };
  EXPECT_EQ(outside("zeros"), "float32[1,1,4]<0.0, 0.0, 0.0, 0.0>");
  EXPECT_EQ(outside("border"), "float32[1,1,4]<1.0, 3.0, 1.0, 3.0>");
  EXPECT_EQ(outside("reflection"), "float32[1,1,4]<1.0, 3.0, 1.0, 1.0>");
  EXPECT_THAT(outside("mirror"), HasSubstr("not one of zeros, border, reflection"));
}

TEST(GridSample, RefusesInputsThatDoNotFit) {
  const char* x = "float32[1,1,3]<1>";
  EXPECT_THAT(Both("GridSample", {x, "float32[2,1,1]<0>"}), HasSubstr("the batch of the grid is 2; it must be 1"));
  EXPECT_THAT(Both("GridSample", {x, "float32[1,1,2]<0>"}), HasSubstr("last dimension of the grid"));
  EXPECT_THAT(Both("GridSample", {"float32[1,1,0]<>", "float32[1,1,1]<0>"}), HasSubstr("nothing can be sampled"));
  EXPECT_EQ(Both("GridSample", {"float32[0,1,3]<>", "float32[0,1,1]<>"}), "float32[0,1,1]<>");
}

TEST(AffineGrid, MapsPositions) {
  const char* identity = "float32[1,2,3]<1, 0, 0, 0, 1, 0>";
  EXPECT_EQ(Both("AffineGrid", {identity, "int64[4]<1, 1, 1, 2>"}), "float32[1,1,2,2]<-0.5, 0.0, 0.5, 0.0>");
  EXPECT_EQ(Both("AffineGrid", {identity, "int64[4]<1, 1, 1, 2>"}, "{align_corners=1}"),
            "float32[1,1,2,2]<-1.0, 0.0, 1.0, 0.0>");
  EXPECT_THAT(Both("AffineGrid", {identity, "int64[3]<1, 1, 2>"}), HasSubstr("it must have 4 or 5"));
  EXPECT_THAT(Both("AffineGrid", {identity, "int64[4]<2, 1, 1, 2>"}), HasSubstr("theta has shape"));
  EXPECT_THAT(Both("AffineGrid", {identity, "int64[4]<1, 1, -1, 2>"}), HasSubstr("negative"));
}

// Refuses any allocation above a limit.
class LimitedPieces : public HostAllocator {
 public:
  explicit LimitedPieces(int64_t limit) : limit_(limit) {}
  absl::StatusOr<std::shared_ptr<std::byte>> Allocate(int64_t bytes) override {
    if (bytes > limit_) return absl::ResourceExhaustedError("larger than the limit");
    return UnlimitedHostAllocator().Allocate(bytes);
  }

 private:
  int64_t limit_;
};

TEST(Resize, NeedsIntermediatesNoLargerThanItsInputOrOutput) {
  for (const char* sizes : {"4, 1, 512", "512, 4, 1", "1, 512, 4", "512, 1, 4"}) {
    for (const char* shape : {"4,1,512", "512,4,1", "1,512,4"}) {
      absl::StatusOr<Graph> graph = ParseGraphText(
          fmt::format("input x : float32[{}]\nconst s = int64[3]<{}>\ny = Resize(x, _, _, s) {{mode=\"cubic\"}}\noutput y\n",
                      shape, sizes));
      ASSERT_TRUE(graph.ok()) << graph.status();
      ASSERT_TRUE(InferTypes(*graph).ok());
      std::vector<float> ones(4 * 512, 1.0f);
      std::vector<HostValue> inputs(1);
      inputs[0].tensor = Tensor::Of<float>(graph->value(graph->inputs()[0]).type.dims, ones);
      // A table of positions or weights has at most four entries of eight bytes for each of 512 outputs.
      LimitedPieces allocator(4 * 512 * 8);
      absl::StatusOr<std::vector<HostValue>> results = Interpret(*graph, std::move(inputs), allocator);
      ASSERT_TRUE(results.ok()) << shape << " to " << sizes << ": " << results.status();
      for (float y : (*results)[0].tensor.Data<float>()) ASSERT_NEAR(y, 1.0f, 1e-6f);
    }
  }
}

}  // namespace
}  // namespace mge
