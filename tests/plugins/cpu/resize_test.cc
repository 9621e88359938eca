// SPDX-License-Identifier: Apache-2.0
// Resize by filters: cubic, antialiased, and of integers.
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/plugins/cpu/under_test.h"

namespace mge::testing {
namespace {

using ::testing::Contains;
using ::testing::Each;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::StartsWith;

Case Resized(const Tensor& x, std::vector<int64_t> sizes, const char* mode, int64_t antialias = 0, int64_t exclude = 0,
             const char* coordinates = "half_pixel") {
  return OneNode("Resize", {x, Tensor(), Tensor(), Integers(std::move(sizes))},
                 With({{"mode", std::string(mode)},
                       {"antialias", antialias},
                       {"exclude_outside", exclude},
                       {"coordinate_transformation_mode", std::string(coordinates)}}),
                 {3});
}

TEST(ResizeFilter, ResamplesAsTheEvaluatorDoes) {
  const std::vector<int64_t> sizes[] = {{2, 3, 14, 5}, {2, 3, 4, 22}, {2, 3, 3, 4}, {2, 3, 16, 9}};
  for (DType type : {DType::kF32, DType::kF64, DType::kF16}) {
    const Tensor x = Random(type, {2, 3, 8, 9}, -1, 1, 1);
    for (const auto& size : sizes) {
      for (int64_t antialias : {0, 1}) {
        for (int64_t exclude : {0, 1}) {
          for (const char* coordinates : {"half_pixel", "align_corners", "asymmetric"}) {
            const Case c = Resized(x, size, "cubic", antialias, exclude, coordinates);
            EXPECT_THAT(UnderTest().Check(c, Roughly).candidates, Not(IsEmpty()));
          }
        }
      }
      EXPECT_THAT(UnderTest().Check(Resized(x, size, "linear", 1), Roughly).candidates, Not(IsEmpty()));
      EXPECT_THAT(UnderTest().Check(Resized(x, size, "linear", 0, 1), Roughly).candidates, Not(IsEmpty()));
    }
  }
}

TEST(ResizeFilter, IntegersAreRoundedAsByTheEvaluator) {
  for (DType type : {DType::kU8, DType::kI8, DType::kI32}) {
    const Tensor x = Random(type, {1, 5, 11, 12}, type == DType::kU8 ? 0 : -128, type == DType::kU8 ? 255 : 127, 3);
    for (const char* mode : {"linear", "cubic"}) {
      for (int64_t antialias : {0, 1}) {
        for (const std::vector<int64_t>& size : {std::vector<int64_t>{1, 5, 22, 18}, {1, 5, 7, 24}, {1, 5, 5, 4}}) {
          EXPECT_THAT(UnderTest().Check(Resized(x, size, mode, antialias), Exactly).candidates,
                      Contains(StartsWith("cpu.resize_filter")));
        }
      }
    }
  }
}

TEST(ResizeFilter, ResamplesMoreThanThreeDimensions) {
  const Tensor x = Random(DType::kF32, {2, 3, 4, 5, 3}, -1, 1, 1);
  EXPECT_THAT(UnderTest().Check(Resized(x, {3, 4, 6, 4, 5}, "linear"), Roughly).candidates,
              Contains(StartsWith("cpu.resize_filter")));
}

TEST(ResizeFilter, LeavesWhatTwoTapsComputeToTheirKernel) {
  const Tensor x = Random(DType::kF32, {1, 3, 8, 8}, -1, 1, 1);
  EXPECT_THAT(UnderTest().Offers(Resized(x, {1, 3, 16, 16}, "linear")).candidates, Each(StartsWith("cpu.resize_linear")));
}

TEST(ResizeFilter, WritesNothingForAnEmptyOutput) {
  const Tensor x = Random(DType::kF32, {1, 3, 8, 8}, -1, 1, 1);
  UnderTest().Check(Resized(x, {1, 3, 0, 16}, "cubic"), Exactly);
}

}  // namespace
}  // namespace mge::testing
