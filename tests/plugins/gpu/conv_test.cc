// SPDX-License-Identifier: Apache-2.0
// Convolutions that the CPU backend does not compute: three dimensions, other types, transposed ones.
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/plugins/gpu/under_test.h"
#include "tests/support/chain.h"

namespace mge::testing {
namespace {

TEST(Conv, SupportsThreeSpatialDimensionsAndEveryFloatingType) {
  for (DType t : {DType::kF32, DType::kF64, DType::kF16, DType::kBF16}) {
    UnderTest().Check(OneNode("Conv", {Random(t, {1, 4, 3, 6, 5}), Random(t, {6, 2, 2, 3, 3}), Random(t, {6})},
                              With({{"group", int64_t{2}}, {"pads", Ints{1, 0, 1, 0, 1, 1}}})),
                      OfProducts(36));
    UnderTest().Check(OneNode("Conv", {Random(t, {1, 5, 6, 5}), Random(t, {7, 5, 3, 3})}), OfProducts(45));
  }
}

// Both tiles, groups, strides, dilations, asymmetric pads, and sizes that are no multiples of a tile.
TEST(Conv, RunsOnMatrixUnits) {
  const Attributes odd = With({{"strides", Ints{2, 1}}, {"dilations", Ints{1, 2}}, {"pads", Ints{0, 1, 2, 3}}});
  for (DType t : {DType::kF16, DType::kBF16, DType::kF32}) {
    for (const Case& c :
         {OneNode("Conv", {Random(t, {2, 8, 12, 11}), Random(t, {70, 8, 3, 3}), Random(t, {70})}, odd),
          OneNode("Conv", {Random(t, {1, 6, 9, 9}), Random(t, {10, 3, 2, 3})}, With({{"group", int64_t{2}}})),
          OneNode("Conv", {Random(t, {100, 3, 5, 4}), Random(t, {5, 3, 3, 3})})}) {
      OnEveryMachine([&](Backend& backend) {
        EXPECT_THAT(backend.Check(c, OfProducts(72)).candidates,
                    ::testing::Contains(t == DType::kF32 ? "gpu.conv.tf32" : "gpu.conv.mma"))
            << c.name;
      });
    }
  }
}

TEST(Conv, SupportsTransposedConvolutions) {
  for (DType t : {DType::kF32, DType::kF64, DType::kF16, DType::kBF16}) {
    Tensor x = Random(t, {2, 4, 5, 6}), w = Random(t, {4, 3, 3, 2}), bias = Random(t, {3});
    UnderTest().Check(OneNode("ConvTranspose", {x, w, bias}), OfProducts(24));
    UnderTest().Check(OneNode("ConvTranspose", {x, w},
                              With({{"strides", Ints{3, 2}}, {"pads", Ints{1, 0, 2, 1}}, {"output_padding", Ints{2, 1}}})),
                      OfProducts(24));
    UnderTest().Check(
        OneNode("ConvTranspose", {x, Random(t, {4, 3, 2, 2})}, With({{"group", int64_t{2}}, {"dilations", Ints{2, 3}}})),
        OfProducts(8));
    UnderTest().Check(
        OneNode("ConvTranspose", {x, w, bias}, With({{"strides", Ints{3, 2}}, {"output_shape", Ints{16, 11}}})),
        OfProducts(24));
    for (const char* automatic : {"SAME_UPPER", "SAME_LOWER"}) {
      UnderTest().Check(
          OneNode("ConvTranspose", {x, w}, With({{"strides", Ints{2, 2}}, {"auto_pad", std::string(automatic)}})),
          OfProducts(24));
    }
    UnderTest().Check(OneNode("ConvTranspose", {Random(t, {1, 2, 7}), Random(t, {2, 3, 3})}), OfProducts(6));
    UnderTest().Check(OneNode("ConvTranspose", {Random(t, {1, 2, 3, 4, 2}), Random(t, {2, 3, 2, 1, 3})}), OfProducts(12));
  }
}

}  // namespace
}  // namespace mge::testing
