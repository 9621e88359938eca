// SPDX-License-Identifier: Apache-2.0
// BatchNormalization in training and its gradients.
#include "gtest/gtest.h"
#include "tests/plugins/cpu/under_test.h"

namespace mge::testing {
namespace {

// Channels that fill vectors or not, and more pixels than one block of sums.
const Shape kShapes[] = {{2, 5, 9, 7}, {3, 100, 12, 11}, {2, 64, 33}, {150, 37}, {1, 3, 5, 4, 6}};

Case Forward(const Shape& shape, double low, double high) {
  const Shape channels = {shape[1]};
  return OneNode("BatchNormalization",
                 {Random(DType::kF32, shape, low, high, 1), Random(DType::kF32, channels, -2, 2, 2),
                  Random(DType::kF32, channels, -2, 2, 3), Random(DType::kF32, channels, -2, 2, 4),
                  Random(DType::kF32, channels, 1, 2, 5)},
                 With({{"training_mode", int64_t{1}}, {"momentum", 0.75f}}), {}, 3);
}

TEST(BatchNormTraining, NormalizesAndUpdatesTheStatistics) {
  OnEveryMachine([](Backend& backend) {
    for (const Shape& shape : kShapes) {
      EXPECT_EQ(backend.Check(Forward(shape, -2, 2), Roughly).candidates.size(), 1);
    }
  });
}

TEST(BatchNormTraining, IsExactIfTheMeanIsFarFromZero) {
  OnEveryMachine([](Backend& backend) {
    // Squares of 1000 leave no digits of a variance near 1. Rounding of the elements themselves is 6e-5.
    backend.Check(Forward({2, 20, 13, 11}, 998, 1002), [](DType) { return Tolerance{1e-3, 1e-3}; });
  });
}

TEST(BatchNormTraining, GivesTheGradients) {
  OnEveryMachine([](Backend& backend) {
    for (const Shape& shape : kShapes) {
      const Case c = OneNode("BatchNormalizationGradient",
                             {Random(DType::kF32, shape, -1, 1, 1), Random(DType::kF32, shape, -2, 3, 2),
                              Random(DType::kF32, {shape[1]}, -2, 2, 3)},
                             {}, {}, 3, "mge");
      EXPECT_EQ(backend.Check(c, [](DType) { return Tolerance{2e-4, 1e-4}; }).candidates.size(), 1);
    }
  });
}

TEST(BatchNormTraining, LeavesOtherTypesAndBroadcastsToTheBody) {
  const auto x = [](DType t, Shape shape) { return Random(t, std::move(shape), -1, 1, 1); };
  const DType f32 = DType::kF32, f64 = DType::kF64;
  for (const std::vector<Tensor>& inputs : {std::vector<Tensor>{x(f32, {1, 5, 4, 4}), x(f32, {2, 5, 4, 4}), x(f32, {5})},
                                            std::vector<Tensor>{x(f64, {2, 5, 4, 4}), x(f64, {2, 5, 4, 4}), x(f64, {5})}}) {
    EXPECT_TRUE(UnderTest().Offers(OneNode("BatchNormalizationGradient", inputs, {}, {}, 3, "mge")).candidates.empty());
  }
}

}  // namespace
}  // namespace mge::testing
