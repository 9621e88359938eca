// SPDX-License-Identifier: Apache-2.0
#include "tests/core/ops/rewrites/rewrites_test_util.h"

namespace mge {
namespace {

struct Form {
  std::string dtype = "float32";
  std::string axes = "int64[1]<-1>";
  std::string mean_attrs = "";
  std::string square = "s = Pow(c, two)\n";
  std::string quotient = "n = Div(c, d)\n";
  std::string scale = "g = Mul(n, rgamma)\n";
  std::string shift = "y = Add(g, rbeta)\n";
  std::string gamma_shape = "[8]";
  std::string outputs = "output y\n";
};

std::string Model(const Form& f) {
  return "input x : " + f.dtype + "[2,3,8]\nconst axes = " + f.axes + "\nconst two = " + f.dtype +
         "[]<2>\nconst eps = " + f.dtype + "[]<0.01>\nconst rgamma = " + f.dtype + f.gamma_shape +
         "<1>\nconst rbeta = " + f.dtype + "[8]<0>\nm = ReduceMean(x, axes)" + f.mean_attrs + "\nc = Sub(x, m)\n" +
         f.square + "v = ReduceMean(s, axes)" + f.mean_attrs + "\ne = Add(v, eps)\nd = Sqrt(e)\n" + f.quotient + f.scale +
         f.shift + f.outputs;
}

constexpr char kUnchanged[] = "ReduceMean Sub Pow ReduceMean Add Sqrt Div Mul Add";

TEST(LayerNormRewrite, MatchesTheFormsMadeOfSingleNodes) {
  EXPECT_EQ(AfterRewrite("layer_norm", Model({})), "LayerNormalization");
  EXPECT_EQ(AfterRewrite("layer_norm", Model({.axes = "int64[1]<2>"})), "LayerNormalization");
  EXPECT_EQ(AfterRewrite("layer_norm", Model({.square = "s = Mul(c, c)\n"})), "LayerNormalization");
  EXPECT_EQ(AfterRewrite("layer_norm", Model({.quotient = "i = Reciprocal(d)\nn = Mul(i, c)\n"})), "LayerNormalization");
  EXPECT_EQ(AfterRewrite("layer_norm", Model({.scale = "g = Mul(rgamma, n)\n", .shift = "y = Add(rbeta, g)\n"})),
            "LayerNormalization");
}

TEST(LayerNormRewrite, WorksInEveryFloatingType) {
  EXPECT_EQ(AfterRewrite("layer_norm", Model({.dtype = "float64"}), 1e-7), "LayerNormalization");
  EXPECT_EQ(AfterRewrite("layer_norm", Model({.dtype = "float16"}), 1e-2), "LayerNormalization");
  EXPECT_EQ(AfterRewrite("layer_norm", Model({.dtype = "bfloat16"}), 8e-2), "LayerNormalization");
}

TEST(LayerNormRewrite, AddsAShiftToANormalizationWithoutOne) {
  const std::string text = "input x : float32[2,8]\nconst rg = float32[8]<1>\nconst rb = float32[8]<0>\n";
  EXPECT_EQ(AfterRewrite("layer_norm", text + "n = LayerNormalization(x, rg)\ny = Add(n, rb)\noutput y\n"),
            "LayerNormalization");
  EXPECT_EQ(AfterRewrite("layer_norm", text + "n, m = LayerNormalization(x, rg)\ny = Add(n, rb)\noutput y\noutput m\n"),
            "LayerNormalization Add");
  EXPECT_EQ(AfterRewrite("layer_norm", text + "n = LayerNormalization(x, rg)\ny = Add(n, rb)\noutput y\noutput n\n"),
            "LayerNormalization Add");
}

TEST(LayerNormRewrite, DoesNotMatchOtherGraphs) {
  EXPECT_EQ(AfterRewrite("layer_norm", Model({.axes = "int64[1]<1>"})), kUnchanged);
  EXPECT_EQ(AfterRewrite("layer_norm", Model({.axes = "int64[2]<1, 2>"})), kUnchanged);
  EXPECT_EQ(AfterRewrite("layer_norm", Model({.gamma_shape = "[2,3,8]"})), kUnchanged);
  EXPECT_EQ(AfterRewrite("layer_norm", Model({.square = "s = Pow(x, two)\n"})), kUnchanged);
}

TEST(LayerNormRewrite, DoesNotApplyIfOtherNodesUseInnerValues) {
  EXPECT_EQ(AfterRewrite("layer_norm", Model({.outputs = "output y\noutput m\n"})), kUnchanged);
  EXPECT_EQ(AfterRewrite("layer_norm", Model({.outputs = "output y\noutput d\n"})), kUnchanged);
  EXPECT_EQ(AfterRewrite("layer_norm", Model({.outputs = "z = Neg(c)\noutput y\noutput z\n"})),
            std::string(kUnchanged) + " Neg");
}

}  // namespace
}  // namespace mge
