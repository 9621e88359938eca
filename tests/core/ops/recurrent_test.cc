// SPDX-License-Identifier: Apache-2.0
// RNN, GRU, LSTM.
#include "tests/core/ops/both_ways.h"

namespace mge {
namespace {

using ::testing::HasSubstr;

// Attributes and weights of an RNN that sums its inputs: sizes 1, W = R = 1, affine activation, so h = x + h.
constexpr const char* kSum = "{{hidden_size=1, activations=[\"Affine\"{}], direction=\"{}\", layout={}}}";

std::string Sum(const char* x, std::string_view direction, int layout, const char* lengths, int wanted = 0) {
  const bool two = direction == "bidirectional";
  const char* one = two ? "float32[2,1,1]<1>" : "float32[1,1,1]<1>";
  return Both("RNN", {x, one, one, "_", lengths},
              fmt::format(fmt::runtime(kSum), two ? ", \"Affine\"" : "", direction, layout), 2, wanted);
}

TEST(Rnn, RunsInEveryDirection) {
  const char* x = "float32[3,1,1]<1, 2, 3>";
  EXPECT_EQ(Sum(x, "forward", 0, "_"), "float32[3,1,1,1]<1.0, 3.0, 6.0>");
  EXPECT_EQ(Sum(x, "reverse", 0, "_"), "float32[3,1,1,1]<6.0, 5.0, 3.0>");
  EXPECT_EQ(Sum(x, "bidirectional", 0, "_"), "float32[3,2,1,1]<1.0, 6.0, 3.0, 5.0, 6.0, 3.0>");
  EXPECT_EQ(Sum(x, "bidirectional", 0, "_", 1), "float32[2,1,1]<6.0, 6.0>");
  EXPECT_THAT(Sum(x, "sideways", 0, "_"), HasSubstr("not one of forward, reverse, bidirectional"));
}

TEST(Rnn, StopsAtTheLengthOfEachSequence) {
  const char* x = "float32[3,2,1]<1, 10, 2, 20, 3, 30>";
  EXPECT_EQ(Sum(x, "forward", 0, "int32[2]<3, 1>"), "float32[3,1,2,1]<1.0, 10.0, 3.0, 0.0, 6.0, 0.0>");
  EXPECT_EQ(Sum(x, "forward", 0, "int32[2]<2, 0>", 1), "float32[1,2,1]<3.0, 0.0>");
  EXPECT_EQ(Sum(x, "reverse", 0, "int32[2]<3, 2>"), "float32[3,1,2,1]<6.0, 30.0, 5.0, 20.0, 3.0, 0.0>");
  EXPECT_THAT(Sum(x, "forward", 0, "int32[2]<4, 1>"), HasSubstr("sequence_lens[0] = 4 is outside of 0..3"));
  EXPECT_THAT(Sum(x, "forward", 0, "int32[2]<-1, 1>"), HasSubstr("sequence_lens[0] = -1"));
  EXPECT_THAT(Sum(x, "forward", 0, "int32[3]<1>"), HasSubstr("sequence_lens has shape [3]"));
}

TEST(Rnn, PutsTheBatchFirstWhenAsked) {
  EXPECT_EQ(Sum("float32[2,3,1]<1, 2, 3, 10, 20, 30>", "forward", 1, "_"),
            "float32[2,3,1,1]<1.0, 3.0, 6.0, 10.0, 30.0, 60.0>");
  EXPECT_EQ(Sum("float32[0,3,1]<>", "forward", 1, "_"), "float32[0,3,1,1]<>");
}

TEST(Rnn, HandlesAHugeBatchWithoutElements) {
  const char* one = "float32[1,1,1]<1>";
  EXPECT_EQ(Both("RNN", {"float32[0,1099511627776,1]<>", one, one}), "float32[0,1,1099511627776,1]<>");
}

TEST(Rnn, ClipsAndTakesParameters) {
  const std::vector<std::string> in = {"float32[2,1,1]<-4, 3>", "float32[1,1,1]<1>", "float32[1,1,1]<0>",
                                       "float32[1,2]<0.5, 0.5>"};
  EXPECT_EQ(Both("RNN", in, "{hidden_size=1, activations=[\"LeakyRelu\"], activation_alpha=[0.5], clip=2.0}", 2),
            "float32[2,1,1,1]<-1.0, 2.0>");
  EXPECT_EQ(Both("RNN", in, "{activations=[\"RELU\"]}", 2), "float32[2,1,1,1]<0.0, 4.0>");
  EXPECT_EQ(Both("RNN@1", in, "{activations=[\"Relu\"], output_sequence=1}", 2), "float32[2,1,1,1]<0.0, 4.0>");
  EXPECT_THAT(Both("RNN", in, "{activations=[\"Relu\"], activation_alpha=[0.5]}", 2), HasSubstr("more values"));
  EXPECT_THAT(Both("RNN", in, "{activations=[\"Swish\"]}", 2), HasSubstr("activation \"Swish\" is not known"));
  EXPECT_THAT(Both("RNN", in, "{activations=[\"Relu\", \"Relu\"]}", 2), HasSubstr("has 2 names; 1 are needed"));
  EXPECT_THAT(Both("RNN", in, "{clip=0.0}", 2), HasSubstr("clip = 0"));
}

TEST(Rnn, RefusesShapesThatDoNotFit) {
  const char* x = "float32[3,1,1]<1>";
  const char* one = "float32[1,1,1]<1>";
  EXPECT_THAT(Both("RNN", {x, "float32[1,1,2]<1>", one}, "", 2), HasSubstr("W has shape [1,1,2]; it must be [1,1,1]"));
  EXPECT_THAT(Both("RNN", {x, one, "float32[1,2,1]<1>"}, "", 2), HasSubstr("R has shape"));
  EXPECT_THAT(Both("RNN", {x, one, one}, "{hidden_size=2}", 2), HasSubstr("hidden_size"));
  EXPECT_THAT(Both("RNN", {x, one, one}, "{hidden_size=0}", 2), HasSubstr("hidden_size = 0"));
  EXPECT_THAT(Both("RNN", {x, one, one, "float32[1,1]<1>"}, "", 2), HasSubstr("B has shape"));
  EXPECT_THAT(Both("RNN", {x, one, one, "_", "_", "float32[2,1,1]<1>"}, "", 2), HasSubstr("initial_h has shape"));
  EXPECT_THAT(Both("RNN", {"float32[3,1]<1>", one, one}, "", 2), HasSubstr("X has shape [3,1]"));
  EXPECT_THAT(Both("RNN", {x, one, one}, "{layout=2}", 2), HasSubstr("layout = 2"));
}

TEST(Gru, MixesTheOldStateIn) {
  // Biases alone set the gates: update 0.25, reset 1 and 0.
  const char* rest = "{{activations=[\"Affine\", \"Affine\"], linear_before_reset={}}}";
  auto run = [&](const char* bias, int linear_before_reset) {
    return Both("GRU", {"float64[1,1,1]<0>", "float64[1,3,1]<0>", "float64[1,3,1]<0, 0, 1>", bias, "_", "float64[1,1,1]<8>"},
                fmt::format(fmt::runtime(rest), linear_before_reset), 2, 1);
  };
  // (1 - 0.25) * (reset * 8 + recurrent bias 4) + 0.25 * 8
  EXPECT_EQ(run("float64[1,6]<0.25, 0.5, 0, 0, 0, 4>", 0), "float64[1,1,1]<8.0>");
  EXPECT_EQ(run("float64[1,6]<0.25, 0.5, 0, 0, 0, 4>", 1), "float64[1,1,1]<6.5>");
}

TEST(Lstm, CarriesItsCellState) {
  // Biases alone set the affine gates: input 0.5, output 2, forget 0.25, cell 4.
  const char* rest = "{{activations=[\"Affine\", \"Affine\", \"Affine\"]{}}}";
  auto run = [&](std::string_view more, const char* peepholes, int wanted) {
    return Both("LSTM",
                {"float64[1,1,1]<0>", "float64[1,4,1]<0>", "float64[1,4,1]<0>", "float64[1,8]<0.5, 2, 0.25, 4, 0, 0, 0, 0>",
                 "_", "_", "float64[1,1,1]<8>", peepholes},
                fmt::format(fmt::runtime(rest), more), 3, wanted);
  };
  EXPECT_EQ(run("", "_", 2), "float64[1,1,1]<4.0>");  // 0.25 * 8 + 0.5 * 4
  EXPECT_EQ(run("", "_", 1), "float64[1,1,1]<8.0>");
  EXPECT_EQ(run(", input_forget=1", "_", 2), "float64[1,1,1]<6.0>");  // 0.5 * 8 + 0.5 * 4
  // Input and forget gates read the old cell, the output gate the new one: input 1.5, forget 2.25, c = 24, output 2 + 24.
  EXPECT_EQ(run("", "float64[1,3]<0.125, 1, 0.25>", 2), "float64[1,1,1]<24.0>");
  EXPECT_EQ(run("", "float64[1,3]<0.125, 1, 0.25>", 1), "float64[1,1,1]<624.0>");
  EXPECT_THAT(run("", "float64[1,4]<1>", 1), HasSubstr("P has shape [1,4]; it must be [1,3]"));
}

// Runs a DynamicQuantizeLSTM of hidden size 1 with affine gates. Biases set input and output gate to 1, forget to 0. The
// cell gate is W x + R h.
std::string Quantized(const std::vector<std::string>& x_w_r, const char* lengths, const char* h,
                      const std::vector<std::string>& scales, int wanted = 0) {
  std::vector<std::string> in = x_w_r;
  in.insert(in.end(), {"float32[1,8]<1, 1, 0, 0, 0, 0, 0, 0>", lengths, h, "_", "_"});
  in.insert(in.end(), scales.begin(), scales.end());
  return Both("com.microsoft::DynamicQuantizeLSTM", in, "{hidden_size=1, activations=[\"Affine\", \"Affine\", \"Affine\"]}",
              3, wanted);
}
const std::vector<std::string> kOneEach = {"float32[1]<0.01>", "int8[1]<0>", "float32[1]<0.01>", "int8[1]<0>"};

TEST(DynamicQuantizeLstm, QuantizesTheWholeInputByOneRange) {
  // The range is 0..2, so 1 is quantized to 127 of 255.
  const char* x = "float32[2,1,1]<1, 2>";
  const char *w = "int8[1,1,4]<0, 0, 0, 100>", *none = "int8[1,1,4]<0>";
  EXPECT_EQ(Quantized({x, w, none}, "_", "_", kOneEach), "float32[2,1,1,1]<0.9960785, 2.0>");
  // Elements behind the longest sequence do not count for the range.
  EXPECT_EQ(Quantized({x, w, none}, "int32[1]<1>", "_", kOneEach), "float32[2,1,1,1]<1.0, 0.0>");
}

TEST(DynamicQuantizeLstm, QuantizesTheStatesOfAStepByOneRange) {
  const char *x = "float32[1,2,1]<0, 0>", *none = "int8[1,1,4]<0>", *r = "int8[1,1,4]<0, 0, 0, 100>";
  // The range is -3..1, so 0 is quantized to 191.
  EXPECT_EQ(Quantized({x, none, r}, "_", "float32[1,2,1]<1, -3>", kOneEach, 1), "float32[1,2,1]<1.0039216, -2.9960785>");
}

TEST(DynamicQuantizeLstm, ScalesByDirectionOrColumn) {
  const char *x = "float32[1,1,1]<255>", *none = "uint8[1,1,4]<7>", *w = "uint8[1,1,4]<7, 7, 7, 107>";
  const char *column = "float32[1,4]<9, 9, 9, 0.25>", *seven = "uint8[1,4]<7>";
  EXPECT_EQ(Quantized({x, w, none}, "_", "_", {column, seven, "float32[1]<1>", "uint8[1]<7>"}), "float32[1,1,1,1]<6375.0>");
  EXPECT_THAT(Quantized({x, w, none}, "_", "_", {"float32[2]<1>", seven, column, seven}),
              HasSubstr("W_scale has shape [2]"));
  EXPECT_THAT(Quantized({x, w, none}, "_", "_", {column, seven, column, "uint8[1,3]<7>"}),
              HasSubstr("R_zero_point has shape"));
  EXPECT_THAT(Quantized({x, "uint8[1,2,4]<7>", none}, "_", "_", {column, seven, column, seven}), HasSubstr("W has shape"));
}

}  // namespace
}  // namespace mge
