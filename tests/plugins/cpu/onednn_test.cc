// SPDX-License-Identifier: Apache-2.0
// Kernels of oneDNN: never its reference code, and correct results however the work is split.
#include <algorithm>
#include <cmath>

#include "gtest/gtest.h"
#include "tests/plugins/cpu/under_test.h"
#include "tests/support/chain.h"

namespace mge::testing {
namespace {

struct Grid {
  int64_t images, channels, outputs, group, h, w, kernel_h, kernel_w, stride, pad, dilation;
};

// Returns a case of one Conv. If `constant_only`, the tensors have no data.
Case Conv(const Grid& g, bool constant_only = false) {
  auto tensor = [&](Shape shape, uint64_t seed, bool data) {
    return data ? Random(DType::kF32, std::move(shape), -1, 1, seed) : *Tensor::Create(DType::kF32, std::move(shape));
  };
  int64_t pad_h = g.kernel_h > 1 ? g.pad : 0, pad_w = g.kernel_w > 1 ? g.pad : 0;
  return OneNode("Conv",
                 {tensor({g.images, g.channels, g.h, g.w}, 1, !constant_only),
                  tensor({g.outputs, g.channels / g.group, g.kernel_h, g.kernel_w}, 2, !constant_only),
                  tensor({g.outputs}, 3, !constant_only)},
                 With({{"strides", Ints{g.stride, g.w == 1 ? 1 : g.stride}},
                       {"pads", Ints{pad_h, pad_w, pad_h, pad_w}},
                       {"dilations", Ints{g.dilation, g.dilation}},
                       {"group", g.group}}),
                 {1, 2});
}

int64_t OutputSize(int64_t in, int64_t kernel, int64_t stride, int64_t pad, int64_t dilation) {
  if (kernel == 1) pad = 0;
  int64_t over = in + 2 * pad - (kernel - 1) * dilation - 1;
  return over < 0 ? 0 : over / stride + 1;
}

std::string TextOf(const Grid& g) {
  std::string text;
  for (int64_t n :
       {g.images, g.channels, g.outputs, g.group, g.h, g.w, g.kernel_h, g.kernel_w, g.stride, g.pad, g.dilation}) {
    text += std::to_string(n) + " ";
  }
  return text;
}

// Calls visit(grid, shape of the output) for every convolution with an output.
void ForEachConvolution(const std::function<void(const Grid&, const Shape&)>& visit) {
  struct Channels {
    int64_t in, out, group;
  };
  constexpr Channels kChannels[] = {{3, 64, 1},    {17, 33, 1},  {64, 64, 1}, {256, 128, 1},
                                    {192, 192, 8}, {96, 96, 96}, {64, 128, 4}};
  for (int64_t images : {1, 2, 3, 4, 8, 32}) {
    for (int64_t h : {1, 7, 14, 15, 28, 30, 56}) {
      for (bool line : {false, true}) {
        for (int64_t kernel : {1, 3, 5, 7}) {
          for (int64_t stride : {1, 2, 3}) {
            for (int64_t dilation : {1, 2}) {
              if (kernel == 1 && dilation > 1) continue;
              for (int64_t pad : {int64_t{0}, kernel / 2 * dilation}) {
                int64_t w = line ? 1 : h, oh = OutputSize(h, kernel, stride, pad, dilation);
                if (oh == 0 || (pad == 0 && kernel == 1 && line)) continue;
                for (const Channels& c : kChannels) {
                  Grid g = {images, c.in, c.out, c.group, h, w, kernel, line ? 1 : kernel, stride, pad, dilation};
                  visit(g, {images, c.out, oh, line ? 1 : oh});
                }
              }
            }
          }
        }
      }
    }
  }
}

TEST(Onednn, NeverOffersReferenceCodeForAConvolution) {
  int asked = 0, offered = 0;
  std::vector<Tensor> expected(1);
  for (uint32_t threads : {1u, 2u, 3u, 4u, 8u}) {
    UnderTest().SetThreads(threads);
    ForEachConvolution([&](const Grid& g, const Shape& y) {
      double flops = 2.0 * static_cast<double>(y[0] * y[1] * y[2] * y[3] * g.channels / g.group * g.kernel_h * g.kernel_w);
      if (flops < 2e7) return;  // too little work for oneDNN
      expected[0] = *Tensor::Create(DType::kF32, y);
      Backend::Outcome o = UnderTest().Offers(Conv(g, /*constant_only=*/true), &expected);
      ++asked;
      bool found = false;
      for (const std::string& id : o.candidates) {
        if (!id.starts_with("onednn.")) continue;
        found = true;
        EXPECT_EQ(id.find(".ref"), std::string::npos) << id << " for " << TextOf(g) << "on " << threads << " threads";
        EXPECT_EQ(id.find("+ref"), std::string::npos) << id << " for " << TextOf(g) << "on " << threads << " threads";
      }
      EXPECT_FALSE(o.candidates.empty()) << TextOf(g);
      offered += found;
    });
  }
  UnderTest().SetThreads(2);
  EXPECT_GT(asked, 1000);
  if (!MGE_HAS_ONEDNN) GTEST_SKIP() << "built without oneDNN";
  EXPECT_GT(offered, asked * 9 / 10) << "there is good code for nearly all of them";
}

TEST(Onednn, NeverOffersReferenceCodeForAProductOrAPooling) {
  for (uint32_t threads : {1u, 2u, 3u, 8u}) {
    UnderTest().SetThreads(threads);
    for (int64_t m : {1, 7, 64, 129}) {
      Case c = OneNode("MatMul", {Random(DType::kF32, {m, 512}), Random(DType::kF32, {512, 1001})}, {}, {1});
      for (const std::string& id : UnderTest().Offers(c).candidates) EXPECT_EQ(id.find(".ref"), std::string::npos) << id;
    }
    for (int64_t images : {1, 2, 3}) {
      for (const char* op : {"MaxPool", "AveragePool"}) {
        for (int64_t stride : {1, 2, 3}) {
          Case c =
              OneNode(op, {Random(DType::kF32, {images, 65, 57, 58})},
                      With({{"kernel_shape", Ints{3, 3}}, {"strides", Ints{stride, stride}}, {"pads", Ints{1, 1, 0, 1}}}));
          for (const std::string& id : UnderTest().Offers(c).candidates) EXPECT_EQ(id.find(".ref"), std::string::npos) << id;
        }
      }
    }
  }
  UnderTest().SetThreads(2);
}

TEST(Onednn, IsCorrectHoweverTheImagesAreSplit) {
  const Grid grids[] = {
      {1, 64, 64, 1, 15, 15, 3, 3, 2, 1, 1},  // the last row of the image is not read
      {2, 64, 96, 1, 14, 14, 1, 1, 2, 0, 1},  // the same with several images
      {3, 32, 48, 1, 15, 13, 3, 3, 2, 0, 1},  // more images than threads, and not a multiple
      {5, 64, 64, 1, 9, 9, 3, 3, 1, 1, 1},
      {1, 256, 128, 1, 7, 7, 3, 3, 1, 0, 1},   // bands that need the filter in different layouts
      {2, 48, 48, 3, 14, 14, 3, 3, 2, 1, 1},   // groups
      {3, 96, 96, 96, 31, 31, 3, 3, 2, 1, 1},  // depthwise
      {1, 64, 64, 1, 200, 1, 3, 1, 1, 1, 1},   // columns
      {3, 64, 64, 1, 77, 1, 5, 1, 2, 2, 2},
      {2, 64, 64, 1, 14, 14, 3, 3, 1, 12, 2},  // bands that read only padding
  };
  for (uint32_t threads : {1u, 2u, 3u, 8u}) {
    UnderTest().SetThreads(threads);
    for (const Grid& g : grids) {
      Case c = Conv(g);
      c.name = TextOf(g) + "on " + std::to_string(threads) + " threads";
      UnderTest().Check(c, OfProducts(g.channels / g.group * g.kernel_h * g.kernel_w));
    }
  }
  UnderTest().SetThreads(2);
}

TEST(Onednn, IsCorrectWithASumHoweverTheImagesAreSplit) {
  for (uint32_t threads : {2u, 3u}) {
    UnderTest().SetThreads(threads);
    for (int64_t images : {1, 3}) {
      Case c = Conv({images, 64, 64, 1, 15, 15, 3, 3, 2, 1, 1});
      Then(c, "Add", {Random(DType::kF32, {images, 64, 8, 8}, -1, 1, 5)}, {}, false);
      Then(c, "Relu");
      UnderTest().Check(c, OfProducts(576));
    }
  }
  UnderTest().SetThreads(2);
}

TEST(Onednn, ComputesEveryActivationOfAnEpilogue) {
  for (const char* op : {"Relu", "Sigmoid", "Tanh", "HardSwish", "LeakyRelu", "Gelu"}) {
    Case conv = Conv({1, 64, 64, 1, 15, 15, 3, 3, 1, 1, 1});
    Then(conv, op);
    Case product =
        OneNode("MatMul", {Random(DType::kF32, {64, 256}, -1, 1, 1), Random(DType::kF32, {256, 256}, -1, 1, 2)}, {}, {1});
    Then(product, op);
    for (const Case& c : {conv, product}) {
      bool found = false;
      for (const std::string& id : UnderTest().Check(c, OfProducts(576)).candidates) found |= id.starts_with("onednn.");
      EXPECT_EQ(found, MGE_HAS_ONEDNN) << c.name;
    }
  }
}

TEST(Onednn, KeepsNaNThroughActivationsSumsAndMaxima) {
  const auto with_nan = [](Tensor t) {
    std::span<float> x = t.MutableData<float>();
    x[x.size() / 3] = NAN;
    x[x.size() / 2] = INFINITY;
    return t;
  };
  for (const char* op : {"Relu", "Sigmoid", "Tanh", "HardSwish", "LeakyRelu", "Gelu"}) {
    Case conv = Conv({2, 64, 64, 1, 15, 15, 3, 3, 1, 1, 1});
    conv.inputs[0] = with_nan(conv.inputs[0]);
    Case sum = conv, late = Conv({2, 64, 64, 1, 15, 15, 3, 3, 1, 1, 1});
    Then(sum, "Add", {Random(DType::kF32, {2, 64, 15, 15}, -1, 1, 5)}, {}, false);
    Then(late, "Add", {with_nan(Random(DType::kF32, {2, 64, 15, 15}, -1, 1, 5))}, {}, false);
    Case product = OneNode(
        "MatMul", {with_nan(Random(DType::kF32, {64, 256}, -1, 1, 1)), Random(DType::kF32, {256, 256}, -1, 1, 2)}, {}, {1});
    for (Case* c : {&conv, &sum, &late, &product}) {
      Then(*c, op);
      UnderTest().Check(*c, OfProducts(576));
    }
  }
  for (int64_t stride : {1, 2}) {
    UnderTest().Check(
        OneNode("MaxPool", {with_nan(Random(DType::kF32, {2, 64, 57, 58}))},
                With({{"kernel_shape", Ints{3, 3}}, {"strides", Ints{stride, stride}}, {"pads", Ints{1, 1, 0, 1}}})),
        Exactly);
  }
}

TEST(Onednn, SupportsConvolutionsOfOneDimension) {
  Case c = OneNode("Conv", {Random(DType::kF32, {2, 64, 300}, -1, 1, 1), Random(DType::kF32, {96, 64, 3}, -1, 1, 2)},
                   With({{"pads", Ints{1, 1}}}), {1});
  bool found = false;
  for (const std::string& id : UnderTest().Check(c, OfProducts(192)).candidates) found |= id.starts_with("onednn.conv");
  EXPECT_EQ(found, MGE_HAS_ONEDNN);
}

TEST(Onednn, SupportsVolumesWhoseLayersOrPixelsAreIndependent) {
  for (const Shape& kernel : {Shape{1, 3, 3}, Shape{3, 1, 1}}) {
    Case c = OneNode("Conv",
                     {Random(DType::kF32, {2, 64, 6, 14, 15}, -1, 1, 1),
                      Random(DType::kF32, {96, 64, kernel[0], kernel[1], kernel[2]}, -1, 1, 2)},
                     {}, {1});
    bool found = false;
    for (const std::string& id : UnderTest().Check(c, OfProducts(576)).candidates) found |= id.starts_with("onednn.conv");
    EXPECT_EQ(found, MGE_HAS_ONEDNN);
  }
}

TEST(Onednn, LeavesLongWindowsThatTakeLongToCompile) {
  if (!MGE_HAS_ONEDNN) GTEST_SKIP() << "built without oneDNN";
  auto offers = [](const Grid& g) {
    const std::vector<std::string> ids = UnderTest().Offers(Conv(g, /*constant_only=*/true)).candidates;
    return std::any_of(ids.begin(), ids.end(), [](const std::string& id) { return id.starts_with("onednn."); });
  };
  EXPECT_FALSE(offers({1, 1, 1, 1, 1, 22176, 1, 256, 2, 0, 1}));
  EXPECT_FALSE(offers({1, 1, 36, 1, 1, 11217, 1, 256, 128, 0, 1}));
  EXPECT_TRUE(offers({1, 8, 8, 1, 172, 264, 3, 39, 1, 1, 1}));
}

// Returns a case of a gradient of Conv(g). The filter of an input's gradient is a constant.
Case Gradient(const char* op, const Grid& g, DType type = DType::kF32) {
  const int64_t oh = OutputSize(g.h, g.kernel_h, g.stride, g.pad, g.dilation);
  const int64_t ow = OutputSize(g.w, g.kernel_w, g.stride, g.pad, g.dilation);
  const Tensor x = Random(type, {g.images, g.channels, g.h, g.w}, -1, 1, 1);
  const Tensor w = Random(type, {g.outputs, g.channels / g.group, g.kernel_h, g.kernel_w}, -1, 1, 2);
  const Tensor dy = Random(type, {g.images, g.outputs, oh, ow}, -1, 1, 3);
  const bool input = std::string_view(op) == "ConvInputGradient";
  return OneNode(op, input ? std::vector<Tensor>{dy, w, x} : std::vector<Tensor>{x, dy, w},
                 With({{"strides", Ints{g.stride, g.stride}},
                       {"pads", Ints{g.pad, g.pad, g.pad, g.pad}},
                       {"dilations", Ints{g.dilation, g.dilation}},
                       {"group", g.group}}),
                 input ? std::vector<int>{1} : std::vector<int>{}, 1, "mge");
}

TEST(Onednn, ComputesTheGradientsOfAConvolutionHoweverTheImagesAreSplit) {
  const Grid grids[] =
      {
          {4, 32, 48, 1, 14, 15, 3, 3, 1, 1, 1},
          {3, 33, 50, 1, 15, 14, 3, 3, 2, 1, 1},  // channels that fill no vector, rows that no window reads
          {5, 128, 96, 1, 20, 20, 1, 1, 2, 0, 1},
          {3, 64, 64, 2, 13, 13, 3, 3, 1, 2, 2},
          {3, 96, 96, 96, 31, 30, 3, 3, 2, 1, 1},
          {4, 3, 32, 1, 40, 40, 7, 7, 2, 3, 1},
      };
  for (uint32_t threads : {1u, 2u, 3u}) {
    UnderTest().SetThreads(threads);
    for (const Grid& g : grids) {
      for (const char* op : {"ConvInputGradient", "ConvWeightGradient"}) {
        Case c = Gradient(op, g);
        c.name = op + (" " + TextOf(g)) + "on " + std::to_string(threads) + " threads";
        const bool input = std::string_view(op) == "ConvInputGradient";
        const int64_t products = input ? g.outputs / g.group * g.kernel_h * g.kernel_w : g.images * g.h * g.w;
        const std::vector<std::string> ids = UnderTest().Check(c, OfProducts(products)).candidates;
        EXPECT_EQ(ids.size(), MGE_HAS_ONEDNN ? 1 : 0) << c.name;
      }
    }
  }
  UnderTest().SetThreads(2);
}

TEST(Onednn, LeavesGradientsThatTheirBodiesComputeFaster) {
  const Grid alone = {1, 64, 64, 1, 28, 28, 3, 3, 1, 1, 1}, small = {2, 4, 4, 1, 5, 5, 3, 3, 1, 1, 1};
  for (const char* op : {"ConvInputGradient", "ConvWeightGradient"}) {
    EXPECT_TRUE(UnderTest().Offers(Gradient(op, alone)).candidates.empty()) << "one image for two threads";
    EXPECT_TRUE(UnderTest().Offers(Gradient(op, small)).candidates.empty()) << "too little work";
    const Grid two = {2, 64, 64, 1, 28, 28, 3, 3, 1, 1, 1};
    EXPECT_TRUE(UnderTest().Offers(Gradient(op, two, DType::kF64)).candidates.empty()) << "float64";
  }
}

TEST(Onednn, SplitsAColumnOfPixelsAmongTheThreads) {
  // One row and one column of pixels have the same bytes, so they must use the same code and have the same cost.
  std::vector<std::string> candidates[2];
  std::vector<double> us[2];
  for (bool column : {false, true}) {
    Shape x = column ? Shape{1, 96, 500, 1} : Shape{1, 96, 1, 500},
          filter = column ? Shape{96, 96, 3, 1} : Shape{96, 96, 1, 3};
    Case c = OneNode("Conv", {Random(DType::kF32, x, -1, 1, 1), Random(DType::kF32, filter, -1, 1, 2)},
                     With({{"pads", column ? Ints{1, 0, 1, 0} : Ints{0, 1, 0, 1}}}), {1});
    Backend::Outcome o = UnderTest().Offers(c);
    candidates[column] = o.candidates;
    us[column] = o.us;
  }
  EXPECT_EQ(candidates[0], candidates[1]);
  EXPECT_EQ(us[0], us[1]);
}

}  // namespace
}  // namespace mge::testing
