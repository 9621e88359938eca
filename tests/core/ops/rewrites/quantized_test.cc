// SPDX-License-Identifier: Apache-2.0
// Rewrites of models between QuantizeLinear and DequantizeLinear.
#include "tests/core/ops/rewrites/rewrites_test_util.h"

namespace mge {
namespace {

// Returns the text of a constant of integers in [low, high].
std::string Integers(const std::string& name, const std::string& type, int64_t count, int low, int high) {
  std::mt19937 random(static_cast<uint32_t>(name.size() + static_cast<size_t>(count)));
  std::string text = "const " + name + " = " + type + "<";
  for (int64_t i = 0; i < count; ++i) {
    text += (i ? "," : "") + std::to_string(low + static_cast<int>(random() % static_cast<uint32_t>(high - low + 1)));
  }
  return text + ">\n";
}

constexpr double kQuantum = 0.05;  // of the results of all graphs below

// Returns a graph that quantizes x, applies `body` to xf, and quantizes and returns its result r. The results may differ by
// one quantum, because the rewritten form rounds in another order.
std::string Model(const std::string& body, const std::string& shape, const std::string& after = "", int y_zero = 0) {
  return "input x : float32[" + shape +
         "]\nconst xs = float32[]<0.02>\nconst xz = uint8[]<100>\nconst ys = float32[]<0.05>\nconst yz = uint8[]<" +
         std::to_string(y_zero) + ">\nconst six = float32[]<6>\nconst none = float32[]<0>\n" +
         "xq = QuantizeLinear(x, xs, xz)\nxf = DequantizeLinear(xq, xs, xz)\n" + body + after + "q = QuantizeLinear(" +
         (after.empty() ? "r" : "c") + ", ys, yz)\ny = DequantizeLinear(q, ys, yz)\noutput y\n";
}

// Returns the operators after the rewrite. The results, which are at most 12.75, differ by at most one quantum.
std::string After(const std::string& name, const std::string& text) {
  return AfterRewrite(name, text, 1.01 * kQuantum / 12.75);
}

std::string Filter(bool per_channel, const std::string& bias) {
  return Integers("wq", "int8[6,4,3,3]", 216, -128, 127) +
         (per_channel ? "const ws = float32[6]<0.001,0.002,0.003,0.001,0.002,0.004>\nconst wz = int8[6]<0,0,0,0,0,0>\n"
                      : "const ws = float32[]<0.002>\nconst wz = int8[]<0>\n") +
         "wf = DequantizeLinear(wq, ws, wz) {axis=0}\n" + bias;
}
const char kConv[] = "r = Conv(xf, wf) {pads=[1,1,1,1]}\n";
const char kBiasedConv[] = "r = Conv(xf, wf, b) {pads=[1,1,1,1]}\n";
const char kFloatBias[] = "const b = float32[6]<0.5,-0.5,1,0,2,-3>\n";

TEST(QuantizedConvRewrite, BecomesQLinearConv) {
  const std::string done = "QuantizeLinear QLinearConv DequantizeLinear";
  for (bool per_channel : {false, true}) {
    EXPECT_EQ(After("quantized_conv", Model(Filter(per_channel, "") + kConv, "1,4,5,6")), done);
    EXPECT_EQ(After("quantized_conv", Model(Filter(per_channel, kFloatBias) + kBiasedConv, "1,4,5,6")), done);
  }
  const std::string integers =
      Integers("bq", "int32[6]", 6, -30000, 30000) + "const bs = float32[]<0.00004>\nb = DequantizeLinear(bq, bs)\n";
  EXPECT_EQ(After("quantized_conv", Model(Filter(false, integers) + kBiasedConv, "1,4,5,6")), done);
}

TEST(QuantizedConvRewrite, DropsAClipThatTheIntegersSaturateAt) {
  const std::string model = Filter(true, "") + kConv, done = "QuantizeLinear QLinearConv DequantizeLinear";
  EXPECT_EQ(After("quantized_conv", Model(model, "1,4,5,6", "c = Relu(r)\n")), done);
  EXPECT_EQ(After("quantized_conv", Model(model, "1,4,5,6", "const big = float32[]<13>\nc = Clip(r, none, big)\n")), done);
}

TEST(QuantizedConvRewrite, KeepsAClipWithinTheRange) {
  const std::string model = Filter(true, "") + kConv;
  EXPECT_EQ(After("quantized_conv", Model(model, "1,4,5,6", "c = Relu(r)\n", 3)),
            "QuantizeLinear DequantizeLinear DequantizeLinear Conv Relu QuantizeLinear DequantizeLinear");
  EXPECT_EQ(After("quantized_conv", Model(model, "1,4,5,6", "c = Clip(r, none, six)\n")),
            "QuantizeLinear DequantizeLinear DequantizeLinear Conv Clip QuantizeLinear DequantizeLinear");
}

TEST(QuantizedConvRewrite, NeedsTheFloatsForNothingElse) {
  std::string model = Model(Filter(true, "") + kConv, "1,4,5,6");
  EXPECT_EQ(After("quantized_conv", model + "output r\n"),
            "QuantizeLinear DequantizeLinear DequantizeLinear Conv QuantizeLinear DequantizeLinear");
}

TEST(QuantizedConvRewrite, RefusesScalesAlongAnotherAxis) {
  const std::string filter = Integers("wq", "int8[4,4,3,3]", 144, -128, 127) +
                             "const ws = float32[4]<0.001,0.002,0.003,0.001>\nwf = DequantizeLinear(wq, ws) {axis=1}\n";
  EXPECT_EQ(After("quantized_conv", Model(filter + kConv, "1,4,5,6")),
            "QuantizeLinear DequantizeLinear DequantizeLinear Conv QuantizeLinear DequantizeLinear");
}

std::string Matrix(bool per_column, const std::string& axis = "1") {
  return Integers("wq", "int8[4,6]", 24, -128, 127) +
         (per_column ? "const ws = float32[6]<0.01,0.02,0.03,0.01,0.02,0.04>\nconst wz = int8[6]<0,0,0,0,0,0>\n"
                     : "const ws = float32[]<0.02>\nconst wz = int8[]<3>\n") +
         "wf = DequantizeLinear(wq, ws, wz) {axis=" + axis + "}\n";
}

// The bias 0.45 is no multiple of 0.02 * 10, the scale of the sums, so results would be off by steps of 0.05.
TEST(QuantizedConvRewrite, StaysFloatIfTheBiasWouldBeRounded) {
  const std::string coarse = "const wq = int8[1,4,3,3]<1>\nconst ws = float32[]<10>\nwf = DequantizeLinear(wq, ws)\n";
  EXPECT_EQ(After("quantized_conv", Model(coarse + "const b = float32[1]<0.45>\n" + kBiasedConv, "1,4,5,6")),
            "QuantizeLinear DequantizeLinear DequantizeLinear Conv QuantizeLinear DequantizeLinear");
  EXPECT_EQ(After("quantized_conv", Model(coarse + "const b = float32[1]<0.4>\n" + kBiasedConv, "1,4,5,6")),
            "QuantizeLinear QLinearConv DequantizeLinear");
}

// 40000 products of 255 by 255 are more than 2^31.
TEST(IntegerRewrites, StayFloatIfASumMightNotFitIntoInt32) {
  const auto wide = [](int depth) {
    return "input xq : uint8[1," + std::to_string(depth) + "]\nconst s = float32[]<0.000001>\nconst wq = uint8[" +
           std::to_string(depth) +
           ",1]<255>\nxf = DequantizeLinear(xq, s)\nwf = DequantizeLinear(wq, s)\nr = MatMul(xf, wf)\n";
  };
  const std::string quantized = "q = QuantizeLinear(r, s)\noutput q\n";
  EXPECT_EQ(RewrittenOps("integer_product", wide(40000) + "output r\n"), "DequantizeLinear DequantizeLinear MatMul");
  EXPECT_EQ(RewrittenOps("integer_product", wide(30000) + "output r\n"), "MatMulInteger Cast Mul");
  EXPECT_EQ(RewrittenOps("quantized_matmul", wide(40000) + quantized),
            "DequantizeLinear DequantizeLinear MatMul QuantizeLinear");
  EXPECT_EQ(RewrittenOps("quantized_matmul", wide(30000) + quantized), "QLinearMatMul");
}

TEST(QuantizedMatMulRewrite, BecomesQLinearMatMul) {
  for (bool per_column : {false, true}) {
    EXPECT_EQ(After("quantized_matmul", Model(Matrix(per_column) + "r = MatMul(xf, wf)\n", "2,3,4", "", 128)),
              "QuantizeLinear QLinearMatMul DequantizeLinear");
  }
  EXPECT_EQ(After("quantized_matmul", Model("t = Transpose(xf) {perm=[0,2,1]}\ntq = QuantizeLinear(t, xs, xz)\n"
                                            "tf = DequantizeLinear(tq, xs, xz)\nr = MatMul(xf, tf)\n",
                                            "2,3,4", "", 128)),
            "QuantizeLinear DequantizeLinear Transpose QuantizeLinear QLinearMatMul DequantizeLinear");
}

TEST(IntegerProductRewrite, ReplacesAMatMulWithAFloatResult) {
  for (bool per_column : {false, true}) {
    EXPECT_EQ(After("integer_product", Model(Matrix(per_column) + "r = MatMul(xf, wf)\n", "2,3,4", "c = Tanh(r)\n", 128)),
              "QuantizeLinear MatMulInteger Cast Mul Tanh QuantizeLinear DequantizeLinear");
    EXPECT_EQ(After("integer_product", Model(Matrix(per_column) + "r = MatMul(xf, wf)\n", "2,3,4", "", 128)),
              "QuantizeLinear DequantizeLinear DequantizeLinear MatMul QuantizeLinear DequantizeLinear")
        << "left to quantized_matmul";
  }
}

TEST(IntegerProductRewrite, ReplacesAGemm) {
  const std::string done = "QuantizeLinear MatMulInteger Cast Mul Add QuantizeLinear DequantizeLinear";
  EXPECT_EQ(After("integer_product", Model(Matrix(true) + kFloatBias + "r = Gemm(xf, wf, b) {alpha=0.5}\n", "3,4", "", 128)),
            done);
  const std::string turned =
      Integers("wq", "int8[6,4]", 24, -128, 127) +
      "const ws = float32[6]<0.01,0.02,0.03,0.01,0.02,0.04>\nwf = DequantizeLinear(wq, ws) {axis=0}\n";
  EXPECT_EQ(After("integer_product", Model(turned + kFloatBias + "r = Gemm(xf, wf, b) {transB=1}\n", "3,4", "", 128)), done);
  EXPECT_EQ(After("integer_product", Model(Matrix(true) + kFloatBias + "r = Gemm(xf, wf, b) {beta=0.5}\n", "3,4", "", 128)),
            "QuantizeLinear DequantizeLinear DequantizeLinear Gemm QuantizeLinear DequantizeLinear");
}

TEST(IntegerConvRewrite, ReplacesAConvWithAFloatResult) {
  for (bool per_channel : {false, true}) {
    const std::string after = "c = Tanh(r)\n", start = "QuantizeLinear ConvInteger Cast Mul ";
    EXPECT_EQ(After("integer_conv", Model(Filter(per_channel, "") + kConv, "1,4,5,6", after, 128)),
              start + "Tanh QuantizeLinear DequantizeLinear");
    EXPECT_EQ(After("integer_conv", Model(Filter(per_channel, kFloatBias) + kBiasedConv, "1,4,5,6", after, 128)),
              start + "Add Tanh QuantizeLinear DequantizeLinear");
  }
  EXPECT_EQ(After("integer_conv", Model(Filter(true, "") + kConv, "1,4,5,6", "c = Relu(r)\n")),
            "QuantizeLinear DequantizeLinear DequantizeLinear Conv Relu QuantizeLinear DequantizeLinear")
      << "left to quantized_conv";
}

// Like Model(), but the result has the scale of x.
std::string Moved(const std::string& body, const std::string& shape, const std::string& scale = "xs") {
  return "input x : float32[" + shape +
         "]\nconst xs = float32[]<0.02>\nconst xz = uint8[]<100>\nconst other = float32[]<0.03>\n"
         "const flat = int64[1]<-1>\n"
         "xq = QuantizeLinear(x, xs, xz)\nxf = DequantizeLinear(xq, xs, xz)\n" +
         body + "q = QuantizeLinear(r, " + scale + ", xz)\ny = DequantizeLinear(q, " + scale + ", xz)\noutput y\n";
}

TEST(QuantizedMoveRewrite, MovesIntegers) {
  for (const std::string move : {"MaxPool(xf) {kernel_shape=[2,2], pads=[1,1,0,0]}", "Transpose(xf) {perm=[0,2,3,1]}",
                                 "Reshape(xf, flat)", "Flatten(xf)"}) {
    const std::string op = move.substr(0, move.find('('));
    EXPECT_EQ(AfterRewrite("quantized_move", Moved("r = " + move + "\n", "1,4,5,6"), 0),
              "QuantizeLinear " + op + " DequantizeLinear");
    EXPECT_EQ(AfterRewrite("quantized_move", Moved("r = " + move + "\n", "1,4,5,6", "other"), 0),
              "QuantizeLinear DequantizeLinear " + op + " QuantizeLinear DequantizeLinear");
  }
}

TEST(QuantizedMoveRewrite, JoinsIntegers) {
  const std::string half = "hq = QuantizeLinear(x, other, xz)\nhf = DequantizeLinear(hq, other, xz)\n";
  EXPECT_EQ(AfterRewrite("quantized_move", Moved(half + "r = Concat(xf, hf, xf) {axis=1}\n", "2,4"), 0),
            "QuantizeLinear QuantizeLinear DequantizeLinear QuantizeLinear Concat DequantizeLinear");
  EXPECT_EQ(AfterRewrite("quantized_move", Moved("r = Concat(xf, x) {axis=1}\n", "2,4"), 0),
            "QuantizeLinear DequantizeLinear Concat QuantizeLinear DequantizeLinear");
}

// The largest of floats with a negative scale is the smallest of the integers.
TEST(QuantizedMoveRewrite, NeedsPositiveScales) {
  const std::string model =
      "input xq : uint8[1,1,4,4]\nconst s = float32[]<-0.05>\nxf = DequantizeLinear(xq, s)\n"
      "r = MaxPool(xf) {kernel_shape=[2,2]}\nq = QuantizeLinear(r, s)\noutput q\n";
  EXPECT_EQ(RewrittenOps("quantized_move", model), "DequantizeLinear MaxPool QuantizeLinear");
}

TEST(QuantizedMoveRewrite, DropsAPairThatChangesNothing) {
  const std::string pair = "p = QuantizeLinear(xf, xs, xz)\nr = DequantizeLinear(p, xs, xz)\n";
  EXPECT_EQ(AfterRewrite("quantized_move", Moved(pair, "1,4"), 0), "QuantizeLinear DequantizeLinear");
}

}  // namespace
}  // namespace mge
