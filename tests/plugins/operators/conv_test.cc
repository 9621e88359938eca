// SPDX-License-Identifier: Apache-2.0
// Convolutions of one to three spatial dimensions, alone and with fused nodes.
#include "gtest/gtest.h"
#include "tests/support/chain.h"
#include "under_test.h"

namespace mge::testing {
namespace {

struct Window {
  Ints kernel = {3, 3};
  Ints strides = {1, 1};
  Ints pads = {1, 1, 1, 1};
  Ints dilations = {1, 1};
  int64_t group = 1;
};

Case Conv(Shape x, int64_t outputs, const Window& w, bool bias = true, bool constant = true) {
  Shape filter = {outputs, x[1] / w.group};
  filter.insert(filter.end(), w.kernel.begin(), w.kernel.end());
  std::vector<Tensor> inputs = {Random(DType::kF32, x, -1, 1, 1), Random(DType::kF32, filter, -1, 1, 2)};
  if (bias) inputs.push_back(Random(DType::kF32, {outputs}, -1, 1, 3));
  return OneNode("Conv", std::move(inputs),
                 With({{"strides", w.strides}, {"pads", w.pads}, {"dilations", w.dilations}, {"group", w.group}}),
                 constant ? std::vector<int>{1, 2} : std::vector<int>{});
}

int64_t TermsOf(Shape x, const Window& w) {
  int64_t k = x[1] / w.group;
  for (int64_t i : w.kernel) k *= i;
  return k;
}

void CheckAll(Shape x, int64_t outputs, const Window& w) {
  OnEveryMachine([&](Backend& backend) {
    for (bool bias : {true, false}) {
      for (bool constant : {true, false}) backend.Check(Conv(x, outputs, w, bias, constant), OfProducts(TermsOf(x, w)));
    }
  });
}

TEST(Conv, OneByOne) {
  CheckAll({2, 19, 5, 7}, 37, {.kernel = {1, 1}, .pads = {0, 0, 0, 0}});
  CheckAll({1, 300, 3, 3}, 17, {.kernel = {1, 1}, .pads = {0, 0, 0, 0}});
  CheckAll({2, 8, 5, 6}, 9, {.kernel = {1, 1}, .strides = {2, 2}, .pads = {0, 0, 0, 0}});
  CheckAll({1, 8, 5, 6}, 9, {.kernel = {1, 1}, .pads = {1, 0, 0, 2}});
}

TEST(Conv, WindowsAtTheBorders) {
  CheckAll({2, 5, 7, 9}, 18, {});
  CheckAll({1, 5, 7, 9}, 33, {.kernel = {5, 3}, .strides = {2, 1}, .pads = {2, 0, 1, 2}});
  CheckAll({1, 3, 17, 15}, 16, {.kernel = {7, 7}, .strides = {2, 2}, .pads = {3, 3, 3, 3}});
  CheckAll({1, 4, 3, 3}, 7, {.kernel = {3, 3}, .pads = {4, 5, 5, 4}});
  CheckAll({1, 40, 6, 6}, 40, {});
}

TEST(Conv, DilationAndGroups) {
  CheckAll({1, 6, 11, 10}, 8, {.pads = {2, 2, 2, 2}, .dilations = {2, 2}});
  CheckAll({2, 12, 6, 7}, 9, {.group = 3});
  CheckAll({1, 12, 6, 7}, 24, {.pads = {2, 2, 2, 2}, .dilations = {2, 2}, .group = 4});
  CheckAll({1, 4, 6, 7}, 8, {.group = 4});
}

TEST(Conv, Depthwise) {
  for (int64_t channels : {3, 16, 37, 96}) {
    for (int64_t kernel : {3, 5, 4}) {
      for (int64_t stride : {1, 2}) {
        CheckAll({2, channels, 9, 11}, channels,
                 {.kernel = {kernel, kernel}, .strides = {stride, stride}, .pads = {1, 2, 1, 2}, .group = channels});
      }
    }
  }
  CheckAll({1, 20, 9, 11}, 20, {.pads = {2, 2, 2, 2}, .dilations = {2, 2}, .group = 20});
  CheckAll({1, 20, 2, 2}, 20, {.group = 20});
}

TEST(Conv, OneSpatialDimension) {
  CheckAll({2, 5, 30}, 19, {.kernel = {4}, .strides = {2}, .pads = {1, 2}, .dilations = {1}});
  CheckAll({2, 6, 30}, 6, {.kernel = {3}, .strides = {1}, .pads = {1, 1}, .dilations = {1}, .group = 6});
}

TEST(Conv, ComputesPadsFromAutoPad) {
  OnEveryMachine([](Backend& backend) {
    for (const char* pad : {"SAME_UPPER", "SAME_LOWER", "VALID"}) {
      for (int64_t stride : {1, 2}) {
        Case c = OneNode("Conv", {Random(DType::kF32, {1, 4, 8, 9}, -1, 1, 1), Random(DType::kF32, {6, 4, 4, 3}, -1, 1, 2)},
                         With({{"auto_pad", std::string(pad)}, {"strides", Ints{stride, stride}}}), {1});
        backend.Check(c, OfProducts(48));
      }
    }
  });
}

TEST(Conv, ThreeSpatialDimensions) {
  const Ints none(6, 0), one(3, 1);
  CheckAll({2, 5, 4, 6, 7}, 18, {.kernel = {3, 3, 3}, .strides = one, .pads = Ints(6, 1), .dilations = one});
  CheckAll({1, 5, 7, 6, 8}, 17,
           {.kernel = {3, 2, 3}, .strides = {2, 1, 3}, .pads = {2, 0, 1, 1, 1, 0}, .dilations = {2, 1, 2}});
  CheckAll({1, 6, 5, 6, 7}, 8, {.kernel = {2, 3, 2}, .strides = one, .pads = none, .dilations = one, .group = 2});
  CheckAll({1, 18, 5, 6, 7}, 18, {.kernel = {3, 3, 3}, .strides = one, .pads = Ints(6, 1), .dilations = one, .group = 18});
  CheckAll({2, 18, 3, 9, 8}, 18,
           {.kernel = {1, 3, 3}, .strides = {1, 2, 1}, .pads = {0, 1, 1, 0, 1, 1}, .dilations = one, .group = 18});
  CheckAll({2, 6, 5, 4, 3}, 18, {.kernel = {3, 1, 1}, .strides = {2, 1, 1}, .pads = {1, 0, 0, 1, 0, 0}, .dilations = one});
  CheckAll({2, 6, 5, 4, 3}, 18, {.kernel = one, .strides = one, .pads = none, .dilations = one});
  CheckAll({2, 6, 5, 4, 3}, 18, {.kernel = one, .strides = {2, 1, 1}, .pads = {1, 0, 0, 1, 0, 0}, .dilations = one});
  CheckAll({1, 2, 1, 4, 5}, 3, {.kernel = one, .strides = {2, 1, 1}, .pads = {1, 0, 0, 0, 0, 0}, .dilations = one});
  CheckAll({1, 16, 4, 10, 10}, 32, {.kernel = {3, 3, 3}, .strides = one, .pads = Ints(6, 1), .dilations = one});
}

TEST(Conv, ComputesPaddingAlone) {
  CheckAll({1, 4, 0, 5}, 8, {.pads = {2, 1, 1, 1}});
  CheckAll({2, 16, 0, 0}, 16, {.kernel = {1, 1}, .pads = {1, 1, 0, 1}});
  CheckAll({1, 6, 0}, 6, {.kernel = {3}, .strides = {1}, .pads = {2, 2}, .dilations = {1}, .group = 6});
}

TEST(Conv, LargeEnoughToBeSplit) {
  OnEveryMachine([](Backend& backend) {
    backend.Check(Conv({1, 32, 28, 28}, 64, {}), OfProducts(288));
    backend.Check(Conv({1, 96, 28, 28}, 96, {.group = 96}), OfProducts(9));
  });
}

TEST(Conv, LargeCasesOfManyForms) {
  for (bool bias : {true, false}) {
    for (int64_t images : {1, 3}) {
      UnderTest().Check(Conv({images, 64, 15, 14}, 64, {}, bias), OfProducts(576));
      UnderTest().Check(Conv({images, 128, 14, 13}, 96, {.kernel = {1, 1}, .pads = {0, 0, 0, 0}}, bias), OfProducts(128));
      UnderTest().Check(Conv({images, 64, 15, 14}, 64, {.strides = {2, 2}, .pads = {1, 0, 2, 1}}, bias), OfProducts(576));
      UnderTest().Check(Conv({images, 64, 20, 20}, 64, {.pads = {2, 2, 2, 2}, .dilations = {2, 2}, .group = 2}, bias),
                        OfProducts(288));
    }
  }
  Case c = Conv({1, 64, 14, 14}, 64, {});
  Then(c, "Add", {Random(DType::kF32, {1, 64, 14, 14}, -1, 1, 5)}, {}, false);
  Then(c, "Clip", {Fill(DType::kF32, {}, {0}), Fill(DType::kF32, {}, {6})});
  UnderTest().Check(c, OfProducts(576));
}

// Returns a case of ConvTranspose in float32. The shape of W is (channels, outputs / group, kernel).
Case Transposed(Shape x, Shape w, Attributes attrs = {}, bool bias = true, bool constant = true) {
  int64_t outputs = w[1] * attrs.Int("group", 1);
  std::vector<Tensor> inputs = {Random(DType::kF32, x, -1, 1, 1), Random(DType::kF32, w, -1, 1, 2)};
  if (bias) inputs.push_back(Random(DType::kF32, {outputs}, -1, 1, 3));
  return OneNode("ConvTranspose", std::move(inputs), std::move(attrs),
                 constant ? std::vector<int>{1, 2} : std::vector<int>{});
}

void CheckTransposed(Shape x, Shape w, Attributes attrs = {}) {
  int64_t terms = x[1];
  for (size_t d = 2; d < w.size(); ++d) terms *= w[d];
  OnEveryMachine([&](Backend& backend) {
    for (bool bias : {true, false}) {
      for (bool constant : {true, false}) backend.Check(Transposed(x, w, attrs, bias, constant), OfProducts(terms));
    }
  });
}

TEST(ConvTranspose, StridesPadsAndOutputPadding) {
  CheckTransposed({2, 4, 5, 6}, {4, 3, 3, 2});
  CheckTransposed({1, 19, 5, 4}, {19, 37, 2, 2}, With({{"strides", Ints{2, 2}}}));
  CheckTransposed({1, 5, 5, 6}, {5, 20, 4, 4}, With({{"strides", Ints{2, 2}}, {"pads", Ints{1, 1, 1, 1}}}));
  CheckTransposed({2, 4, 5, 6}, {4, 3, 3, 2},
                  With({{"strides", Ints{3, 2}}, {"pads", Ints{1, 0, 2, 1}}, {"output_padding", Ints{2, 1}}}));
  CheckTransposed({1, 3, 3, 4}, {3, 1, 2, 1}, With({{"strides", Ints{5, 3}}, {"output_padding", Ints{4, 2}}}));
}

TEST(ConvTranspose, DilationsAndGroups) {
  CheckTransposed({1, 4, 5, 6}, {4, 3, 3, 2}, With({{"dilations", Ints{2, 3}}}));
  CheckTransposed({1, 4, 6, 6}, {4, 18, 4, 5},
                  With({{"dilations", Ints{2, 4}}, {"strides", Ints{4, 6}}, {"pads", Ints{3, 0, 1, 5}}}));
  CheckTransposed({2, 6, 5, 6}, {6, 5, 3, 3}, With({{"group", int64_t{3}}, {"strides", Ints{2, 1}}}));
  CheckTransposed({1, 21, 4, 5}, {21, 1, 4, 4},
                  With({{"group", int64_t{21}}, {"strides", Ints{2, 2}}, {"pads", Ints{1, 1, 1, 1}}}));
}

TEST(ConvTranspose, OneAndThreeSpatialDimensions) {
  CheckTransposed({2, 5, 30}, {5, 19, 16}, With({{"strides", Ints{8}}, {"pads", Ints{4, 4}}}));
  CheckTransposed({1, 2, 7}, {2, 1, 64}, With({{"strides", Ints{16}}}));
  CheckTransposed({1, 2, 3, 4, 2}, {2, 18, 2, 1, 3});
  CheckTransposed({2, 4, 3, 2, 4}, {4, 3, 3, 2, 3},
                  With({{"strides", Ints{2, 3, 2}}, {"pads", Ints{1, 0, 1, 1, 0, 0}}, {"group", int64_t{2}}}));
}

TEST(ConvTranspose, GivesTheSizeOfOutputShape) {
  CheckTransposed({2, 4, 5, 6}, {4, 3, 3, 2}, With({{"strides", Ints{3, 2}}, {"output_shape", Ints{16, 11}}}));
  for (const char* pad : {"SAME_UPPER", "SAME_LOWER", "VALID"}) {
    CheckTransposed({1, 4, 5, 6}, {4, 3, 3, 4}, With({{"strides", Ints{2, 2}}, {"auto_pad", std::string(pad)}}));
  }
}

TEST(ConvTranspose, LargeEnoughToBeSplit) {
  CheckTransposed({3, 16, 20, 20}, {16, 32, 4, 4}, With({{"strides", Ints{2, 2}}, {"pads", Ints{1, 1, 1, 1}}}));
  CheckTransposed({2, 64, 100}, {64, 32, 16}, With({{"strides", Ints{8}}}));
}

TEST(ConvEpilogue, ResidualAndActivation) {
  OnEveryMachine([](Backend& backend) {
    for (int64_t group : {1, 2, 18}) {
      for (const char* op : {"Relu", "Clip", "Sigmoid", "HardSwish"}) {
        Case c = Conv({2, 18, 6, 7}, 18, {.group = group});
        Then(c, "Add", {Random(DType::kF32, {2, 18, 6, 7}, -1, 1, 5)}, {}, false);
        if (std::string_view(op) == "Clip") {
          Then(c, op, {Fill(DType::kF32, {}, {0}), Fill(DType::kF32, {}, {6})});
        } else {
          Then(c, op);
        }
        EXPECT_FALSE(backend.Claims(c).empty());
        backend.Check(c, OfProducts(9 * 18 / group));
      }
    }
    Case c = Conv({1, 5, 6, 7}, 8, {}, /*bias=*/false);
    Then(c, "Add", {Random(DType::kF32, {8, 1, 1}, -1, 1, 5)});
    Then(c, "Relu");
    backend.Check(c, OfProducts(45));
  });
}

// Returns a case from graph text, with random small numbers as inputs and constants.
Case OfText(const char* text) {
  Case c;
  c.name = text;
  c.graph = *ParseGraphText(text);
  for (ValueId v = 0; v < c.graph.value_count(); ++v) {
    Value& value = c.graph.value(v);
    Tensor t = Random(DType::kF32, value.type.dims, -1, 1, static_cast<uint64_t>(v) + 1);
    if (value.role == Role::kConstant) value.constant = t;
    if (value.role == Role::kInput) c.inputs.push_back(t);
  }
  return c;
}

TEST(Conv, ComputesAConstantImage) {
  for (const char* text : {
           "const x = float32[2,4,6,7]<0>\ninput w : float32[5,4,3,3]\ny = Conv(x, w)\noutput y\n",
           "const x = float32[2,4,6,7]<0>\nconst w = float32[5,4,1,1]<0>\ny = Conv(x, w)\noutput y\n",
           "const x = float32[1,6,6,7]<0>\ninput w : float32[8,3,3,3]\ny = Conv(x, w) {group=2}\noutput y\n",
           "const x = float32[2,6,6,7]<0>\ninput w : float32[6,1,3,3]\ny = Conv(x, w) {group=6, pads=[1,0,1,2]}\noutput y\n",
           "const x = float32[2,6,30]<0>\ninput w : float32[9,6,4]\ny = Conv(x, w) {strides=[2]}\noutput y\n",
           "const x = float32[1,64,15,14]<0>\nconst w = float32[64,64,3,3]<0>\ny = Conv(x, w)\noutput y\n",
       }) {
    OnEveryMachine([&](Backend& backend) { backend.Check(OfText(text), OfProducts(576)); });
  }
}

TEST(ConvEpilogue, AConstantResidual) {
  const std::string conv = "input x : float32[2,6,6,7]\nconst r = float32[2,6,6,7]<0>\n", then = "d = Add(c, r)\n";
  for (const std::string& text : {
           conv + "const w = float32[6,6,3,3]<0>\nc = Conv(x, w) {pads=[1,1,1,1]}\n" + then + "output d\n",
           conv + "input w : float32[6,1,3,3]\nc = Conv(x, w) {group=6, pads=[1,1,1,1]}\n" + then +
               "y = Relu(d)\noutput y\n",
           std::string("const x = float32[1,64,15,14]<0>\nconst w = float32[64,64,1,1]<0>\nc = Conv(x, w)\n"
                       "d = Add(x, c)\noutput d\n"),
           std::string("input x : float32[1,64,15,14]\nconst r = float32[1,64,15,14]<0>\nconst w = float32[64,64,3,3]<0>\n"
                       "c = Conv(x, w) {pads=[1,1,1,1]}\nd = Add(r, c)\noutput d\n"),
       }) {
    OnEveryMachine([&](Backend& backend) {
      Case c = OfText(text.c_str());
      EXPECT_FALSE(backend.Claims(c).empty()) << text;
      backend.Check(c, OfProducts(576));
    });
  }
}

TEST(Conv, RefusesFourSpatialDimensions) {
  Backend::Outcome o = UnderTest().Offers(
      OneNode("Conv", {Random(DType::kF32, {1, 2, 3, 4, 5, 2}), Random(DType::kF32, {2, 2, 1, 1, 1, 1})}));
  EXPECT_TRUE(o.candidates.empty());
  EXPECT_FALSE(o.refusals.empty());
}

}  // namespace
}  // namespace mge::testing
