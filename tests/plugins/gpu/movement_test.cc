// SPDX-License-Identifier: Apache-2.0
// Errors of a run, and operators that the CPU backend lacks: Trilu with a diagonal from the run, cubic interpolation.
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/plugins/gpu/under_test.h"

namespace mge::testing {
namespace {

TEST(Movement, AnErrorNamesTheKernel) {
  std::vector<Tensor> never = {Random(DType::kF32, {1, 7})};
  auto outcome = UnderTest().Check(OneNode("Gather", {Random(DType::kF32, {5, 7}), Integers({9})}), Exactly, &never);
  EXPECT_THAT(outcome.errors, ::testing::Contains("gather_4: index 9 is outside of [-5, 5)"));
}

TEST(Movement, TriluReadsItsDiagonalWhenItRuns) {
  for (DType t : {DType::kU8, DType::kF16, DType::kF32, DType::kF64}) {
    for (int64_t upper : {0, 1}) {
      for (double k : {-9, -1, 0, 2, 9}) {
        UnderTest().Check(OneNode("Trilu", {Random(t, {2, 4, 6}), Fill(DType::kI64, {}, {k})}, With({{"upper", upper}})),
                          Exactly);
      }
    }
  }
}

TEST(Movement, ResizesCubic) {
  for (const char* coordinates :
       {"half_pixel", "pytorch_half_pixel", "align_corners", "asymmetric", "half_pixel_symmetric"}) {
    for (DType t : {DType::kF32, DType::kF16}) {
      Tensor scales = Fill(DType::kF32, {4}, {1, 1, 2, 1.5}), sizes = Integers({1, 3, 3, 11});
      Attributes a = With({{"mode", std::string("cubic")}, {"coordinate_transformation_mode", std::string(coordinates)}});
      UnderTest().Check(OneNode("Resize", {Random(t, {1, 3, 5, 6}), Tensor(), scales}, a, {2}), Roughly);
      UnderTest().Check(OneNode("Resize", {Random(t, {1, 3, 5, 6}), Tensor(), Tensor(), sizes}, a, {3}), Roughly);
    }
  }
}

}  // namespace
}  // namespace mge::testing
