// SPDX-License-Identifier: Apache-2.0
#include "tests/core/ops/rewrites/rewrites_test_util.h"

namespace mge {
namespace {

// Returns the shape of the weights after the rewrite, if the results stay equal.
std::string WeightsAfter(const std::string& text) {
  if (const std::string ops = AfterRewrite("conv_padding_taps", text); ops != "Conv") return ops;
  auto graph = ParseGraphText(text);
  if (absl::Status s = InferTypes(*graph); !s.ok()) return FormatError(s);
  if (absl::Status s = ApplyEverywhere("conv_padding_taps", *graph); !s.ok()) return FormatError(s);
  const Node& conv = graph->node(graph->value(graph->outputs()[0]).producer);
  return ShapeText(graph->value(conv.inputs[1]).type.dims);
}

std::string Dilated(const std::string& x, const std::string& weights, const std::string& attrs,
                    const std::string& dtype = "float32") {
  return fmt::format("input x : {0}{1}\nconst rw = {0}{2}<1>\nconst rb = {0}[4]<1>\ny = Conv(x, rw, rb) {{{3}}}\noutput y\n",
                     dtype, x, weights, attrs);
}

TEST(ConvPaddingTaps, LeavesTheMiddleTapIfTheOthersReadOnlyPadding) {
  EXPECT_EQ(WeightsAfter(Dilated("[2,3,5,5]", "[4,3,3,3]", "dilations=[6,6], pads=[6,6,6,6]")), "[4,3,1,1]");
  EXPECT_EQ(WeightsAfter(Dilated("[2,3,5,5]", "[4,3,3,3]", "dilations=[5,5], pads=[5,5,5,5]")), "[4,3,1,1]");
  EXPECT_EQ(WeightsAfter(Dilated("[2,3,5,9]", "[4,3,3,3]", "dilations=[6,6], pads=[6,6,6,6]")), "[4,3,1,3]");
  EXPECT_EQ(WeightsAfter(Dilated("[2,3,5,5]", "[4,3,5,5]", "dilations=[3,3], pads=[6,6,6,6]")), "[4,3,3,3]");
}

TEST(ConvPaddingTaps, WorksForEveryRankGroupStrideAndType) {
  EXPECT_EQ(WeightsAfter(Dilated("[2,8,5]", "[4,2,3]", "group=4, dilations=[8], pads=[8,8]")), "[4,2,1]");
  EXPECT_EQ(WeightsAfter(Dilated("[1,2,3,4,5]", "[4,2,3,3,3]", "dilations=[4,4,4], pads=[4,4,4,4,4,4]")), "[4,2,1,1,3]");
  EXPECT_EQ(WeightsAfter(Dilated("[1,2,7,7]", "[4,2,3,3]", "strides=[2,2], dilations=[7,7], pads=[7,7,7,7]")), "[4,2,1,1]");
  EXPECT_EQ(WeightsAfter(Dilated("[1,2,4,4]", "[4,2,3,3]", "dilations=[8,8], auto_pad=\"SAME_UPPER\"")), "[4,2,1,1]");
  EXPECT_EQ(WeightsAfter(Dilated("[1,2,4,4]", "[4,2,3,3]", "dilations=[8,8], pads=[8,8,8,8]", "float16")), "[4,2,1,1]");
}

TEST(ConvPaddingTaps, KeepsTapsThatAnyOutputUses) {
  EXPECT_EQ(WeightsAfter(Dilated("[2,3,5,5]", "[4,3,3,3]", "dilations=[4,4], pads=[4,4,4,4]")), "[4,3,3,3]");
  EXPECT_EQ(WeightsAfter(Dilated("[2,3,5,5]", "[4,3,3,3]", "pads=[1,1,1,1]")), "[4,3,3,3]");
  EXPECT_EQ(WeightsAfter(Dilated("[2,3,1,1]", "[4,3,3,3]", "pads=[1,1,1,1]")), "[4,3,1,1]");
}

TEST(ConvPaddingTaps, TapsOnOneSideAreRemovedAlone) {
  EXPECT_EQ(WeightsAfter(Dilated("[1,2,4,4]", "[4,2,2,2]", "dilations=[4,4], pads=[4,4,0,0]")), "[4,2,1,1]");
  EXPECT_EQ(WeightsAfter(Dilated("[1,2,4,4]", "[4,2,2,2]", "dilations=[4,4], pads=[0,0,4,4]")), "[4,2,1,1]");
  // The image would have to be cropped.
  EXPECT_EQ(WeightsAfter(Dilated("[1,2,4,4]", "[4,2,2,2]", "dilations=[6,6], pads=[5,5,2,2]")), "[4,2,2,2]");
}

TEST(ConvPaddingTaps, QuantizedConvolutionsKeepTheirResults) {
  const std::string quantized =
      "input x : float32[1,2,3,3]\nconst s = float32[]<0.02>\nconst z = uint8[]<100>\n"
      "const w = int8[1,2,3,1]<1, 2, 3, 4, 5, 6>\nconst sw = float32[]<0.1>\nconst zw = int8[]<0>\n"
      "q = QuantizeLinear(x, s, z)\n"
      "c = QLinearConv(q, s, z, w, sw, zw, s, z) {dilations=[4,1], pads=[4,0,4,0]}\n"
      "y = DequantizeLinear(c, s, z)\noutput y\n";
  EXPECT_EQ(AfterRewrite("conv_padding_taps", quantized, 0), "QuantizeLinear QLinearConv DequantizeLinear");
}

TEST(ConvPaddingTaps, UnknownSizesAndComputedWeightsAreLeft) {
  EXPECT_EQ(RewrittenOps("conv_padding_taps",
                         "input x : float32[1,1,?,?]\nconst w = float32[1,1,3,3]<1>\n"
                         "y = Conv(x, w) {dilations=[9,9], pads=[9,9,9,9]}\noutput y\n"),
            "Conv");
  EXPECT_EQ(AfterRewrite("conv_padding_taps",
                         "input x : float32[1,1,4,4]\ninput w : float32[1,1,3,3]\n"
                         "y = Conv(x, w) {dilations=[9,9], pads=[9,9,9,9]}\noutput y\n"),
            "Conv");
}

}  // namespace
}  // namespace mge
