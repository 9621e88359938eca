// SPDX-License-Identifier: Apache-2.0
#include "tests/core/ops/rewrites/rewrites_test_util.h"

namespace mge {
namespace {

struct Form {
  std::string dtype = "float32";
  std::string axes = "int64[1]<-1>";
  std::string mean_attrs = "";
  std::string square = "s = Pow(x, two)\n";
  std::string sum = "e = Add(v, eps)\n";
  std::string quotient = "d = Sqrt(e)\nr = Reciprocal(d)\nn = Mul(x, r)\n";
  std::string scale = "y = Mul(n, rgamma)\n";
  std::string gamma_shape = "[8]";
  std::string outputs = "output y\n";
};

std::string Model(const Form& f) {
  auto number = [&](const char* name, const char* value) {
    return std::string("const ") + name + " = " + f.dtype + "[]<" + value + ">\n";
  };
  return "input x : " + f.dtype + "[2,3,8]\nconst axes = " + f.axes + "\n" + number("two", "2") + number("one", "1") +
         number("half", "-0.5") + number("eps", "0.01") + "const rgamma = " + f.dtype + f.gamma_shape + "<1>\n" + f.square +
         "v = ReduceMean(s, axes)" + f.mean_attrs + "\n" + f.sum + f.quotient + f.scale + f.outputs;
}

constexpr char kUnchanged[] = "Pow ReduceMean Add Sqrt Reciprocal Mul Mul";

TEST(RmsNormRewrite, MatchesEveryFormOfTheQuotient) {
  EXPECT_EQ(AfterRewrite("rms_norm", Model({})), "RMSNormalization");
  EXPECT_EQ(AfterRewrite("rms_norm", Model({.quotient = "d = Sqrt(e)\nr = Reciprocal(d)\nn = Mul(r, x)\n"})),
            "RMSNormalization");
  EXPECT_EQ(AfterRewrite("rms_norm", Model({.quotient = "d = Sqrt(e)\nr = Div(one, d)\nn = Mul(x, r)\n"})),
            "RMSNormalization");
  EXPECT_EQ(AfterRewrite("rms_norm", Model({.quotient = "d = Sqrt(e)\nn = Div(x, d)\n"})), "RMSNormalization");
  EXPECT_EQ(AfterRewrite("rms_norm", Model({.quotient = "r = Pow(e, half)\nn = Mul(x, r)\n"})), "RMSNormalization");
}

TEST(RmsNormRewrite, MatchesTheOtherOrdersOfOperands) {
  EXPECT_EQ(AfterRewrite("rms_norm", Model({.axes = "int64[1]<2>", .square = "s = Mul(x, x)\n"})), "RMSNormalization");
  EXPECT_EQ(AfterRewrite("rms_norm", Model({.sum = "e = Add(eps, v)\n", .scale = "y = Mul(rgamma, n)\n"})),
            "RMSNormalization");
}

TEST(RmsNormRewrite, WorksInEveryFloatingType) {
  EXPECT_EQ(AfterRewrite("rms_norm", Model({.dtype = "float64"}), 1e-7), "RMSNormalization");
  EXPECT_EQ(AfterRewrite("rms_norm", Model({.dtype = "float16"}), 1e-2), "RMSNormalization");
  EXPECT_EQ(AfterRewrite("rms_norm", Model({.dtype = "bfloat16"}), 8e-2), "RMSNormalization");
}

// The model computes in `inner` what it reads and scales in `outer`.
std::string Widened(const std::string& outer, const std::string& inner, const std::string& to_inner,
                    const std::string& to_outer) {
  return "input w : " + outer + "[2,3,8]\nconst axes = int64[1]<-1>\nconst two = " + inner + "[]<2>\nconst eps = " + inner +
         "[]<0.01>\nconst rgamma = " + outer + "[8]<1>\nx = Cast(w) {to=" + to_inner +
         "}\ns = Pow(x, two)\nv = ReduceMean(s, axes)\ne = Add(v, eps)\nd = Sqrt(e)\nr = Reciprocal(d)\nn = Mul(x, r)\n" +
         "c = Cast(n) {to=" + to_outer + "}\ny = Mul(rgamma, c)\noutput y\n";
}

TEST(RmsNormRewrite, MatchesHalvesThatAreNormalizedInFloat32) {
  EXPECT_EQ(AfterRewrite("rms_norm", Widened("float16", "float32", "1", "10"), 2e-3), "RMSNormalization");
  EXPECT_EQ(AfterRewrite("rms_norm", Widened("bfloat16", "float32", "1", "16"), 2e-2), "RMSNormalization");
}

// A Cast from float32 may be absent where a value of float32 is at hand.
TEST(RmsNormRewrite, MatchesFloat32ThatIsScaledInHalf) {
  const std::string text =
      "input x : float32[2,3,8]\nconst axes = int64[1]<-1>\nconst two = float32[]<2>\nconst eps = float32[]<0.01>\n"
      "const rgamma = float16[8]<1>\ns = Pow(x, two)\nv = ReduceMean(s, axes)\ne = Add(v, eps)\nd = Sqrt(e)\n"
      "r = Reciprocal(d)\nn = Mul(x, r)\nc = Cast(n) {to=10}\ny = Mul(rgamma, c)\noutput y\n";
  EXPECT_EQ(AfterRewrite("rms_norm", text, 2e-3), "RMSNormalization");
}

// The operator's kernels compute float32 in float32, and float32 must not gain precision either.
TEST(RmsNormRewrite, DoesNotMatchOtherTypesBetweenCasts) {
  const std::string unchanged = "Cast Pow ReduceMean Add Sqrt Reciprocal Mul Cast Mul";
  EXPECT_EQ(AfterRewrite("rms_norm", Widened("float32", "float64", "11", "1")), unchanged);
  EXPECT_EQ(AfterRewrite("rms_norm", Widened("float32", "float16", "10", "1")), unchanged);
}

TEST(RmsNormTypesRewrite, ComputesInTheWiderType) {
  auto model = [](const std::string& x, const std::string& scale) {
    return "input x : " + x + "[2,8]\nconst rs = " + scale + "[8]<1>\ny = RMSNormalization(x, rs) {epsilon=0.5}\noutput y\n";
  };
  EXPECT_EQ(AfterRewrite("rms_norm_types", model("float16", "float32")), "Cast RMSNormalization");
  EXPECT_EQ(AfterRewrite("rms_norm_types", model("float32", "float16"), 2e-3), "Cast RMSNormalization Cast");
  EXPECT_EQ(AfterRewrite("rms_norm_types", model("bfloat16", "float16"), 2e-3), "Cast Cast RMSNormalization Cast");
  EXPECT_EQ(AfterRewrite("rms_norm_types", model("float32", "float64")), "Cast RMSNormalization");
  EXPECT_EQ(AfterRewrite("rms_norm_types", model("float16", "float16")), "RMSNormalization");
}

TEST(RmsNormRewrite, DoesNotMatchOtherGraphs) {
  EXPECT_EQ(AfterRewrite("rms_norm", Model({.axes = "int64[1]<1>"})), kUnchanged);
  EXPECT_EQ(AfterRewrite("rms_norm", Model({.axes = "int64[2]<1, 2>"})), kUnchanged);
  EXPECT_EQ(AfterRewrite("rms_norm", Model({.gamma_shape = "[2,3,8]"})), kUnchanged);
  EXPECT_EQ(AfterRewrite("rms_norm", Model({.square = "s = Pow(x, one)\n"})), kUnchanged);
  EXPECT_EQ(AfterRewrite("rms_norm", Model({.square = "s = Pow(x, two)\nz = Exp(x)\n",
                                            .quotient = "d = Sqrt(e)\nr = Reciprocal(d)\nn = Mul(z, r)\n"})),
            "Pow Exp ReduceMean Add Sqrt Reciprocal Mul Mul");
}

TEST(RmsNormRewrite, DoesNotApplyIfOtherNodesUseInnerValues) {
  EXPECT_EQ(AfterRewrite("rms_norm", Model({.outputs = "output y\noutput n\n"})), kUnchanged);
  EXPECT_EQ(AfterRewrite("rms_norm", Model({.outputs = "output y\noutput r\n"})), kUnchanged);
  EXPECT_EQ(AfterRewrite("rms_norm", Model({.outputs = "z = Neg(v)\noutput y\noutput z\n"})),
            std::string(kUnchanged) + " Neg");
}

}  // namespace
}  // namespace mge
