// SPDX-License-Identifier: Apache-2.0
// Sums, extrema and Hardmax of the CPU backend.
#include "gtest/gtest.h"
#include "tests/plugins/cpu/under_test.h"

namespace mge::testing {
namespace {

TEST(Reduction, SumsLongRowsOfSmallTypes) {
  OnEveryMachine([](Backend& backend) {
    for (DType t : {DType::kI8, DType::kI16, DType::kU8, DType::kU16, DType::kI32}) {
      backend.Check(OneNode("ReduceSum", {Random(t, {210}, -5, 5)}), Exactly);
    }
  });
}

const DType kFloats[] = {DType::kF32, DType::kF64, DType::kF16, DType::kBF16};

TEST(Reduction, ExtremaOfLongAxesAreTheFirstOrTheLast) {
  const Shape shapes[] = {{3, 1}, {3, 63}, {3, 64}, {2, 300}, {300, 5}, {70, 67}, {2, 3, 130}};
  OnEveryMachine([&](Backend& backend) {
    for (DType t : {DType::kF32, DType::kF64, DType::kF16, DType::kBF16, DType::kI8, DType::kU8, DType::kI32, DType::kI64}) {
      for (const Shape& shape : shapes) {
        Tensor x = Random(t, shape, 0, 9);
        for (int64_t axis : {0, 1, -1}) {
          for (const char* op : {"ArgMax", "ArgMin"}) {
            for (int64_t last : {0, 1})
              backend.Check(OneNode(op, {x}, With({{"axis", axis}, {"select_last_index", last}})), Exactly);
          }
        }
      }
    }
  });
}

TEST(Reduction, NanIsTheExtremeOfEveryAxis) {
  OnEveryMachine([](Backend& backend) {
    for (DType t : kFloats) {
      for (int64_t place : {0, 1, 40, 69}) {
        std::vector<double> values(70 * 70, 1);
        for (int64_t i = 0; i < 70; ++i) values[static_cast<size_t>(i * 70 + place)] = NAN;
        for (int64_t i = 0; i < 70; ++i) values[static_cast<size_t>(i * 70 + 50)] = NAN;
        Tensor x = Fill(t, {70, 70}, values);
        for (int64_t axis : {0, 1}) {
          for (int64_t last : {0, 1}) {
            backend.Check(OneNode("ArgMax", {x}, With({{"axis", axis}, {"select_last_index", last}})), Exactly);
            backend.Check(OneNode("ArgMin", {x}, With({{"axis", axis}, {"select_last_index", last}})), Exactly);
          }
          backend.Check(OneNode("Hardmax", {x}, With({{"axis", axis}})), Exactly);
        }
      }
    }
  });
}

TEST(Reduction, HardmaxAlongAnyAxis) {
  OnEveryMachine([](Backend& backend) {
    for (DType t : kFloats) {
      for (int64_t axis : {0, 1, 2, -1}) {
        backend.Check(OneNode("Hardmax", {Random(t, {3, 5, 70}, 0, 3)}, With({{"axis", axis}})), Exactly);
        backend.Check(OneNode("Hardmax", {Random(t, {65, 2, 3}, 0, 3)}, With({{"axis", axis}})), Exactly);
      }
      backend.Check(OneNode("Hardmax", {Random(t, {0, 4})}), Exactly);
      backend.Check(OneNode("Hardmax", {Random(t, {1, 1})}), Exactly);
    }
  });
}

TEST(Reduction, NormsOfWindowsAreThoseOfTheEvaluator) {
  OnEveryMachine([](Backend& backend) {
    for (DType t : kFloats) {
      for (int64_t p : {1, 2}) {
        Attributes a = With({{"kernel_shape", Ints{3, 2}}, {"p", p}});
        backend.Check(OneNode("LpPool", {Random(t, {2, 5, 9, 37})}, a), Roughly);
        a.Set("pads", Ints{1, 0, 1, 1});
        for (int64_t stride : {1, 2, 3}) {
          a.Set("strides", Ints{stride, stride});
          backend.Check(OneNode("LpPool", {Random(t, {2, 70, 9, 37})}, a), Roughly);
        }
        backend.Check(OneNode("LpPool", {Random(t, {1, 3, 40})}, With({{"kernel_shape", Ints{4}}, {"p", p}})), Roughly);
      }
    }
  });
  auto outcome = UnderTest().Offers(
      OneNode("LpPool", {Random(DType::kF32, {1, 3, 40})}, With({{"kernel_shape", Ints{4}}, {"p", int64_t{3}}})));
  EXPECT_TRUE(outcome.candidates.empty());
}

TEST(Reduction, PoolsOfAllWidthsAndStridesFinishTheirRows) {
  OnEveryMachine([](Backend& backend) {
    for (DType t : kFloats) {
      for (int64_t width : {3, 4, 17, 33, 1100}) {
        for (int64_t stride : {1, 2, 3}) {
          const Attributes a =
              With({{"kernel_shape", Ints{2, 3}}, {"strides", Ints{1, stride}}, {"pads", Ints{0, 1, 1, 2}}});
          backend.Check(OneNode("MaxPool", {Random(t, {1, 2, 3, width})}, a), Exactly);
          backend.Check(OneNode("AveragePool", {Random(t, {1, 2, 3, width})}, a), Roughly);
        }
      }
      const Attributes wide = With({{"kernel_shape", Ints{1, 1050}}});
      backend.Check(OneNode("MaxPool", {Random(t, {1, 2, 2, 1100})}, wide), Exactly);
      backend.Check(OneNode("LpPool", {Random(t, {1, 2, 2, 1100})}, wide), Roughly);
    }
  });
}

TEST(Reduction, TopKOfEveryTypeKeepsTheOrderOfEqualElements) {
  for (DType t : {DType::kF32, DType::kF64, DType::kF16, DType::kBF16, DType::kI8, DType::kU8, DType::kI32, DType::kI64}) {
    for (int64_t n : {16, 17, 300}) {
      for (int64_t largest : {0, 1}) {
        for (int64_t axis : {0, 1}) {
          UnderTest().Check(OneNode("TopK", {Random(t, {n, n}, 0, 40), Integers({3})},
                                    With({{"axis", axis}, {"largest", largest}}), {1}, 2),
                            Exactly);
        }
      }
    }
  }
}

}  // namespace
}  // namespace mge::testing
