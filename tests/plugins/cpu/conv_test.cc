// SPDX-License-Identifier: Apache-2.0
// Convolutions that only the CPU backend has.
#include <algorithm>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/plugins/cpu/under_test.h"
#include "tests/support/chain.h"

namespace mge::testing {
namespace {

using ::testing::Contains;
using ::testing::StartsWith;

// A filter of three dimensions merges those that it does not mix. This must also work with operands packed in advance.
TEST(Conv, ComputesConstantVolumes) {
  for (const Shape& kernel : {Shape{1, 3, 3}, Shape{3, 1, 1}, Shape{2, 3, 2}}) {
    Tensor filter = Random(DType::kF32, {9, 5, kernel[0], kernel[1], kernel[2]}, -1, 1, 2);
    Case c = OneNode("Conv", {Random(DType::kF32, {2, 5, 4, 6, 7}, -1, 1, 1), std::move(filter)}, {}, {0, 1});
    Then(c, "Add", {Random(DType::kF32, {2, 9, 5 - kernel[0], 7 - kernel[1], 8 - kernel[2]}, -1, 1, 3)}, {});
    Then(c, "Relu");
    OnEveryMachine([&](Backend& backend) { backend.Check(c, OfProducts(60)); });
  }
}

TEST(Conv, IsCorrectWhereLongRowsAreSplit) {
  for (const Shape& x : {Shape{1, 20, 1, 301}, Shape{3, 20, 301, 1}, Shape{2, 20, 301}}) {
    Shape filter = {20, 1, 5};
    if (x.size() == 4) filter = x[3] == 1 ? Shape{20, 1, 5, 1} : Shape{20, 1, 1, 5};
    const bool column = x.size() == 4 && x[3] == 1;
    Case c = OneNode("Conv", {Random(DType::kF32, x, -1, 1, 1), Random(DType::kF32, filter, -1, 1, 2)},
                     With({{"group", int64_t{20}},
                           {"pads", x.size() == 3 ? Ints{2, 1}
                                    : column      ? Ints{2, 0, 1, 0}
                                                  : Ints{0, 2, 0, 1}}}),
                     {1});
    Then(c, "HardSwish");
    OnEveryMachine([&](Backend& backend) { backend.Check(c, OfProducts(5)); });
  }
}

// Every channel has filters of its own: as many outputs as channels, or several for each, in one to three dimensions.
TEST(Conv, OfSingleChannelsHasOwnLoopsForAnyNumberOfOutputsAndDimensions) {
  struct Of {
    Shape x;
    int64_t outputs;
    Shape kernel;
    Ints strides, dilations;
  };
  const Of cases[] = {{{2, 20, 5, 9, 11}, 20, {3, 3, 3}, {1, 1, 1}, {1, 1, 1}},
                      {{2, 20, 7, 9, 11}, 20, {3, 3, 3}, {2, 2, 2}, {1, 1, 1}},
                      {{1, 5, 6, 7, 8}, 5, {2, 3, 2}, {1, 2, 1}, {2, 1, 2}},
                      {{1, 6, 4, 7, 8}, 24, {3, 3, 3}, {1, 1, 1}, {1, 1, 1}},
                      {{2, 20, 9, 11}, 40, {3, 3}, {1, 1}, {1, 1}},
                      {{2, 7, 9, 11}, 21, {5, 5}, {2, 2}, {1, 1}},
                      {{2, 7, 30}, 28, {3}, {2}, {1}}};
  for (const Of& of : cases) {
    for (const std::vector<int>& constants : {std::vector<int>{}, std::vector<int>{1, 2}}) {
      Shape filter = {of.outputs, 1};
      filter.insert(filter.end(), of.kernel.begin(), of.kernel.end());
      Case c = OneNode("Conv",
                       {Random(DType::kF32, of.x, -1, 1, 1), Random(DType::kF32, filter, -1, 1, 2),
                        Random(DType::kF32, {of.outputs}, -1, 1, 3)},
                       With({{"group", of.x[1]},
                             {"strides", of.strides},
                             {"dilations", of.dilations},
                             {"pads", Ints(2 * of.kernel.size(), 1)}}),
                       constants);
      OnEveryMachine([&](Backend& backend) {
        const Backend::Outcome outcome = backend.Check(c, OfProducts(27));
        EXPECT_THAT(outcome.candidates, Contains(StartsWith("cpu.conv.depthwise"))) << ShapeText(of.x);
      });
    }
  }
}

// Small groups: one to three dimensions, as many outputs as channels or not, filters that are constant or not, with an epilogue.
TEST(Conv, OfSmallGroupsConvolvesTheirChannelsOneAfterAnother) {
  struct Of {
    Shape x;
    int64_t groups, outputs;
    Shape kernel;
  };
  const Of cases[] = {{{2, 16, 5, 6, 7}, 4, 16, {3, 3, 3}},
                      {{1, 16, 4, 6, 9}, 8, 64, {1, 3, 3}},
                      {{1, 12, 4, 5, 6}, 4, 4, {2, 3, 2}},
                      {{2, 18, 9, 11}, 6, 30, {3, 3}},
                      {{2, 14, 30}, 2, 4, {3}}};
  for (const Of& of : cases) {
    for (const std::vector<int>& constants : {std::vector<int>{}, std::vector<int>{1, 2}}) {
      Shape filter = {of.outputs, of.x[1] / of.groups};
      filter.insert(filter.end(), of.kernel.begin(), of.kernel.end());
      Case c = OneNode("Conv",
                       {Random(DType::kF32, of.x, -1, 1, 1), Random(DType::kF32, filter, -1, 1, 2),
                        Random(DType::kF32, {of.outputs}, -1, 1, 3)},
                       With({{"group", of.groups}, {"pads", Ints(2 * of.kernel.size(), 1)}}), constants);
      Then(c, "Sigmoid");
      OnEveryMachine([&](Backend& backend) {
        const Backend::Outcome outcome = backend.Check(c, OfProducts(7 * 27));
        EXPECT_THAT(outcome.candidates, Contains(StartsWith("cpu.conv.grouped"))) << ShapeText(of.x);
      });
    }
  }
}

TEST(ConvTranspose, OfSmallGroupsConvolvesTheirChannelsOneAfterAnother) {
  struct Of {
    Shape x;
    int64_t groups, group_outputs;
    Shape kernel;
  };
  const Of cases[] = {{{2, 16, 3, 4, 5}, 4, 4, {3, 3, 3}},
                      {{1, 12, 3, 4, 5}, 2, 3, {2, 1, 3}},
                      {{2, 9, 6, 7}, 3, 1, {3, 2}},
                      {{1, 8, 9}, 2, 5, {3}}};
  for (const Of& of : cases) {
    for (const std::vector<int>& constants : {std::vector<int>{}, std::vector<int>{1, 2}}) {
      Shape filter = {of.x[1], of.group_outputs};
      filter.insert(filter.end(), of.kernel.begin(), of.kernel.end());
      Case c = OneNode("ConvTranspose",
                       {Random(DType::kF32, of.x, -1, 1, 1), Random(DType::kF32, filter, -1, 1, 2),
                        Random(DType::kF32, {of.groups * of.group_outputs}, -1, 1, 3)},
                       With({{"group", of.groups}, {"strides", Ints(of.kernel.size(), 2)}}), constants);
      Then(c, "Relu");
      OnEveryMachine([&](Backend& backend) {
        const Backend::Outcome outcome = backend.Check(c, OfProducts(6 * 27));
        EXPECT_THAT(outcome.candidates, Contains(StartsWith("cpu.conv_transpose.grouped"))) << ShapeText(of.x);
      });
    }
  }
}

// Appends x * Sigmoid(x), where x is the current output.
void ThenSwish(Case& c) {
  const ValueId x = c.graph.outputs()[0];
  Then(c, "Sigmoid");
  Then(c, "Mul");
  c.graph.node(c.graph.node_count() - 1).inputs.push_back(x);
}

TEST(ConvEpilogue, IncludesASwishWhoseFactorIsOne) {
  for (float alpha : {1.0f, 1.702f}) {
    Case c = OneNode("Conv", {Random(DType::kF32, {1, 8, 20, 21}, -1, 1, 1), Random(DType::kF32, {8, 8, 3, 3}, -1, 1, 2)},
                     {}, {1});
    Then(c, "Swish", {}, With({{"alpha", alpha}}));
    std::vector<std::string> claims = UnderTest().Claims(c);
    EXPECT_EQ(std::count(claims.begin(), claims.end(), "conv_epilogue: Conv Swish"), alpha == 1);
    if (alpha == 1) OnEveryMachine([&](Backend& backend) { backend.Check(c, OfProducts(72)); });
  }
}

TEST(ConvEpilogue, IncludesAProductWithTheSigmoidOfTheSameValue) {
  for (int64_t group : {1, 24}) {
    for (bool adds : {false, true}) {
      Case c = OneNode(
          "Conv", {Random(DType::kF32, {1, 24, 20, 21}, -1, 1, 1), Random(DType::kF32, {24, 24 / group, 3, 3}, -1, 1, 2)},
          With({{"group", group}}), {1});
      if (adds) Then(c, "Add", {Random(DType::kF32, {24, 1, 1}, -1, 1, 5)});
      ThenSwish(c);
      std::vector<std::string> claims = UnderTest().Claims(c);
      const std::string whole = std::string("conv_epilogue: Conv ") + (adds ? "Add " : "") + "Sigmoid Mul";
      EXPECT_NE(std::find(claims.begin(), claims.end(), whole), claims.end()) << claims.size();
      OnEveryMachine([&](Backend& backend) { backend.Check(c, OfProducts(9 * 24 / group)); });
    }
  }
}

TEST(ConvEpilogue, ExcludesAProductWithAnotherSigmoid) {
  Case c =
      OneNode("Conv", {Random(DType::kF32, {1, 8, 9, 9}, -1, 1, 1), Random(DType::kF32, {8, 8, 1, 1}, -1, 1, 2)}, {}, {1});
  Then(c, "Sigmoid");
  Then(c, "Mul", {Random(DType::kF32, {1, 8, 9, 9}, -1, 1, 3)}, {}, false);
  for (const std::string& claim : UnderTest().Claims(c)) EXPECT_NE(claim, "conv_epilogue: Conv Sigmoid Mul");
}

TEST(ConvTranspose, FusesFollowingNodes) {
  OnEveryMachine([](Backend& backend) {
    for (int64_t outputs : {1, 18}) {
      for (const char* op : {"Relu", "Sigmoid"}) {
        Case c = OneNode(
            "ConvTranspose",
            {Random(DType::kF32, {2, 6, 5, 6}), Random(DType::kF32, {6, outputs, 2, 2}), Random(DType::kF32, {outputs})},
            With({{"strides", Ints{2, 2}}}), {1, 2});
        Then(c, "Add", {Random(DType::kF32, {2, outputs, 10, 12}, -1, 1, 5)}, {}, false);
        Then(c, op);
        EXPECT_FALSE(backend.Claims(c).empty());
        backend.Check(c, OfProducts(24));
      }
    }
  });
}

}  // namespace
}  // namespace mge::testing
