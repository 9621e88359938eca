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

// Tuples with one place are updated in their order, also where they run side by side.
TEST(Movement, ScattersManyTuplesInTheirOrder) {
  std::vector<double> rows, pairs;
  for (int i = 0; i < 200; ++i) rows.push_back(i * 7 % 11 - 5);
  for (int i = 0; i < 100; ++i) pairs.push_back(i * i % 5), pairs.push_back(i % 3 - 3);
  for (const char* reduction : {"none", "add", "mul", "max", "min"}) {
    const Attributes a = With({{"reduction", std::string(reduction)}});
    for (DType t : {DType::kF32, DType::kF16, DType::kI64}) {
      UnderTest().Check(
          OneNode("ScatterND", {Random(t, {11, 6}), Fill(DType::kI64, {200, 1}, rows), Random(t, {200, 6})}, a), Exactly);
      UnderTest().Check(
          OneNode("ScatterND", {Random(t, {5, 3}), Fill(DType::kI64, {4, 25, 2}, pairs), Random(t, {4, 25})}, a), Exactly);
    }
  }
}

TEST(Movement, AnIndexOfOneOfManyTuplesOutsideIsNamed) {
  std::vector<double> rows(100, 1);
  rows[70] = -12;
  std::vector<Tensor> never = {Random(DType::kF32, {11, 6})};
  auto outcome = UnderTest().Check(
      OneNode("ScatterND", {Random(DType::kF32, {11, 6}), Fill(DType::kI64, {100, 1}, rows), Random(DType::kF32, {100, 6})}),
      Exactly, &never);
  EXPECT_THAT(outcome.errors, ::testing::Contains("scatter_places: index -12 is outside of [-11, 11)"));
}

}  // namespace
}  // namespace mge::testing
