// SPDX-License-Identifier: Apache-2.0
// RoiAlign: regions of images.
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/plugins/cpu/under_test.h"

namespace mge::testing {
namespace {

Case Regions(Tensor rois, Attributes attrs, int64_t channels = 21) {
  Tensor images = Random(DType::kI64, {rois.shape()[0]}, 0, 1, 4);
  return OneNode("RoiAlign", {Random(DType::kF32, {2, channels, 9, 12}, -1, 1), std::move(rois), std::move(images)},
                 std::move(attrs));
}

// Returns boxes (x1, y1, x2, y2): inside, across every border, outside, without area, with swapped corners.
Tensor Boxes() {
  return Fill(DType::kF32, {6, 4},
              {2, 3, 20, 15, -9, -7, 40, 30, 100, 100, 120, 130, 5, 5, 5, 5, 18, 12, 3, 1, 0, 0, 23, 17});
}

TEST(RoiAlign, SamplesAsTheEvaluatorDoes) {
  OnEveryMachine([](Backend& backend) {
    for (const char* shift : {"half_pixel", "output_half_pixel"}) {
      for (int64_t ratio : {0, 2, 3}) {
        for (const char* mode : {"avg", "max"}) {
          Attributes attrs = With({{"mode", std::string(mode)},
                                   {"coordinate_transformation_mode", std::string(shift)},
                                   {"sampling_ratio", ratio},
                                   {"output_height", int64_t{3}},
                                   {"output_width", int64_t{2}},
                                   {"spatial_scale", 0.5f}});
          Backend::Outcome o = backend.Check(Regions(Boxes(), attrs), Roughly);
          EXPECT_EQ(o.candidates.size(), 2u);
        }
      }
    }
    backend.Check(Regions(Boxes(), {}, 3), Roughly);
  });
}

TEST(RoiAlign, SplitsManyRegionsAmongTheThreads) {
  UnderTest().Check(
      Regions(Random(DType::kF32, {150, 4}, 0, 12), With({{"output_height", int64_t{7}}, {"output_width", int64_t{7}}}), 64),
      Roughly);
}

TEST(RoiAlign, ChecksRegionsAndImages) {
  std::vector<Tensor> expected = {Random(DType::kF32, {6, 21, 1, 1})};
  Case c = Regions(Boxes(), {});
  c.inputs[2] = Integers({0, 1, 2, 0, 1, 0});
  auto outcome = UnderTest().Check(c, Exactly, &expected);
  ASSERT_FALSE(outcome.codes.empty());
  EXPECT_EQ(outcome.codes[0], MGE_OUT_OF_RANGE);
  EXPECT_THAT(outcome.errors[0], ::testing::HasSubstr("batch_indices[2] = 2 is outside of the batch of 2"));
  c = Regions(Fill(DType::kF32, {1, 4}, {0, 0, 1e30, 1}), {});
  c.inputs[2] = Integers({0});
  expected = {Random(DType::kF32, {1, 21, 1, 1})};
  outcome = UnderTest().Check(c, Exactly, &expected);
  ASSERT_FALSE(outcome.codes.empty());
  EXPECT_EQ(outcome.codes[0], MGE_INVALID_ARGUMENT);
}

}  // namespace
}  // namespace mge::testing
