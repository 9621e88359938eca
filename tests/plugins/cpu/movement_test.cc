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

TEST(Movement, GathersElementsAlongEveryAxisOfEverySize) {
  for (DType t : {DType::kU8, DType::kF16, DType::kF32, DType::kF64}) {
    for (DType index : {DType::kI32, DType::kI64}) {
      for (const Shape& shape : {Shape{5, 6, 7}, Shape{5, 1, 7}, Shape{5, 6, 1}, Shape{1, 1, 1}, Shape{300, 2, 9}}) {
        for (int64_t axis : {0, 1, 2, -1}) {
          const double n = static_cast<double>(shape[static_cast<size_t>(axis < 0 ? axis + 3 : axis)]);
          for (Shape wanted : {shape, Shape{1, 1, 1}, Shape{shape[0], 1, 1}, Shape{shape[0], shape[1], 1}}) {
            Tensor indices = Random(index, wanted, -n, n - 1);
            UnderTest().Check(OneNode("GatherElements", {Random(t, shape), indices}, With({{"axis", axis}})), Exactly);
          }
        }
      }
    }
  }
  std::vector<Tensor> never = {Random(DType::kF32, {2, 2})};
  auto outcome = UnderTest().Check(
      OneNode("GatherElements", {Random(DType::kF32, {5, 7}), Fill(DType::kI64, {2, 2}, {0, 1, -6, 2})}), Exactly, &never);
  EXPECT_THAT(outcome.errors, ::testing::Contains("GatherElements: index -6 is outside of [-5, 5)"));
}

TEST(Movement, TransposesBytesAndShortsInBlocksWithRests) {
  OnEveryMachine([](Backend& backend) {
    for (DType t : {DType::kI8, DType::kI16, DType::kBF16}) {
      for (const Shape& shape : {Shape{16, 16}, Shape{8, 8}, Shape{15, 17}, Shape{31, 64}, Shape{65, 33}, Shape{100, 257}}) {
        backend.Check(OneNode("Transpose", {Random(t, shape, -100, 100)}), Exactly);
      }
    }
  });
}

TEST(Movement, ConvertsBlockedLayouts) {
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

// The kernel owns its lists of positions. As arguments of a step they would exceed the host's limit.
TEST(Movement, SupportsALongAxis) {
  constexpr int64_t kLong = 3'000'000;
  Tensor x = Random(DType::kU8, {1, 1, kLong / 2}), sizes = Integers({1, 1, kLong});
  UnderTest().Check(OneNode("Resize", {x, Tensor(), Tensor(), sizes}, {}, {3}), Exactly);
  Tensor floats = Random(DType::kF32, {kLong / 6}), fewer = Integers({kLong / 3});
  Attributes linear = With({{"mode", std::string("linear")}}), reflect = With({{"mode", std::string("reflect")}});
  UnderTest().Check(OneNode("Resize", {floats, Tensor(), Tensor(), fewer}, linear, {3}), Roughly);
  UnderTest().Check(OneNode("Pad", {x, Integers({0, 0, kLong / 4, 0, 0, kLong / 4})}, reflect, {1}), Exactly);
}

// A tensor without elements needs no list of positions, however long its other dimensions are.
TEST(Movement, ALongAxisWithoutElementsNeedsNoMemory) {
  constexpr int64_t kLong = int64_t{1} << 40;
  std::vector<Tensor> nothing = {Tensor::View(DType::kF32, {0, kLong}, nullptr, nullptr)};
  Tensor x = Tensor::View(DType::kF32, {0, 4}, nullptr, nullptr);
  Attributes edge = With({{"mode", std::string("edge")}});
  UnderTest().Check(OneNode("Pad", {x, Integers({0, 0, 0, kLong - 4})}, edge, {1}), Exactly, &nothing);
  UnderTest().Check(OneNode("Resize", {Random(DType::kF32, {1, 4}), Tensor(), Tensor(), Integers({0, kLong})},
                            With({{"mode", std::string("linear")}}), {3}),
                    Exactly, &nothing);
}

}  // namespace
}  // namespace mge::testing
