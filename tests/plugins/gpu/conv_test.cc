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
        const std::string plain = t == DType::kF32 ? "gpu.conv.tf32" : "gpu.conv.mma";
        EXPECT_THAT(backend.Check(c, OfProducts(72)).candidates, ::testing::IsSupersetOf({plain, plain + ".nhwc"}))
            << c.name;
      });
    }
  }
}

// Channels that are and are not a multiple of what one access loads, groups, one to three axes, and pads, with the channels
// last. Filters that are constants are packed.
TEST(Conv, WithTheChannelsLastHasOneToThreeAxes) {
  for (DType t : {DType::kF32, DType::kF64, DType::kF16, DType::kBF16}) {
    for (const std::vector<int>& constant : {std::vector<int>{1}, {}}) {
      const Attributes odd = With({{"strides", Ints{2, 1}}, {"dilations", Ints{1, 2}}, {"pads", Ints{0, 1, 2, 3}}});
      const Attributes deep = With({{"group", int64_t{2}}, {"pads", Ints{1, 0, 1, 0, 1, 1}}});
      for (const Case& c :
           {OneNode("Conv", {Random(t, {2, 16, 7, 6}), Random(t, {10, 16, 3, 2}), Random(t, {10})}, odd, constant),
            OneNode("Conv", {Random(t, {2, 8, 7, 6}), Random(t, {72, 8, 1, 1})}, {}, constant),
            OneNode("Conv", {Random(t, {1, 3, 9, 8}), Random(t, {8, 3, 3, 3})}, {}, constant),
            OneNode("Conv", {Random(t, {2, 8, 30}), Random(t, {5, 8, 4})}, With({{"strides", Ints{2}}}), constant),
            OneNode("Conv", {Random(t, {1, 16, 3, 6, 5}), Random(t, {6, 8, 2, 3, 3}), Random(t, {6})}, deep, constant)}) {
        EXPECT_THAT(UnderTest().Check(c, OfProducts(144)).candidates,
                    ::testing::IsSupersetOf({"gpu.conv.product.nhwc", "gpu.conv.direct.nhwc"}))
            << c.name;
      }
      for (int64_t channels : {16, 10}) {
        Case c = OneNode("Conv", {Random(t, {2, channels, 7, 6}), Random(t, {channels, 1, 3, 2}), Random(t, {channels})},
                         With({{"group", channels}, {"strides", Ints{2, 1}}, {"pads", Ints{0, 1, 2, 3}}}), constant);
        Then(c, "Add", {Random(t, {2, channels, 4, 9}, -1, 1, 5)}, {}, false);
        Then(c, "Relu");
        if (t == DType::kF64)
          c = OneNode("Conv", {Random(t, {2, 8, 7, 6}), Random(t, {8, 1, 3, 2})}, With({{"group", int64_t{8}}}), constant);
        EXPECT_THAT(UnderTest().Check(c, OfProducts(24)).candidates, ::testing::Contains("gpu.conv.depthwise.nhwc"))
            << c.name;
      }
    }
  }
}

// Neither a constant image nor a filter that is the image itself has that layout.
TEST(Conv, WithTheChannelsLastNeedsAnImageOfItsOwn) {
  const Tensor image = Random(DType::kF32, {3, 3, 3, 3});
  Case constant = OneNode("Conv", {image, Random(DType::kF32, {3, 3, 3, 3}, -2, 2, 2)}, {}, {0});
  EXPECT_THAT(UnderTest().Check(constant, OfProducts(27)).candidates,
              ::testing::Each(::testing::Not(::testing::EndsWith(".nhwc"))));
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
