// SPDX-License-Identifier: Apache-2.0
// Errors of a run, and reorders of blocked layouts.
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/plugins/cpu/under_test.h"

namespace mge::testing {
namespace {

TEST(Movement, AnErrorNamesTheOperator) {
  std::vector<Tensor> never = {Random(DType::kF32, {1, 7})};
  auto outcome = UnderTest().Check(OneNode("Gather", {Random(DType::kF32, {5, 7}), Integers({9})}), Exactly, &never);
  EXPECT_THAT(outcome.errors, ::testing::Contains("Gather: index 9 is outside of [-5, 5)"));
}

TEST(Movement, ReordersOfBlockedLayouts) {
  const mge_layout kPlain = {sizeof(mge_layout), MGE_LAYOUT_PLAIN, 0, 0, {}, {}, {}, 0, 0};
  const mge_layout kChannelsLast = {sizeof(mge_layout), MGE_LAYOUT_PERMUTED, 4, 0, {0, 2, 3, 1}, {}, {}, 0, 0};
  const mge_layout kBlocked = {sizeof(mge_layout), MGE_LAYOUT_PERMUTED, 4, 1, {0, 1, 2, 3}, {1}, {16}, 0, 0};
  OnEveryMachine([&](Backend& backend) {
    for (DType t : {DType::kU8, DType::kF16, DType::kF32, DType::kF64}) {
      for (const Shape& shape : {Shape{2, 3, 5, 7}, Shape{1, 64, 30, 33}, Shape{2, 17, 9, 1}, Shape{1, 130, 8, 8}}) {
        Tensor x = Random(t, shape);
        backend.CheckReorder(x, kPlain, kBlocked);
        backend.CheckReorder(x, kBlocked, kChannelsLast);
      }
    }
  });
}

}  // namespace
}  // namespace mge::testing
