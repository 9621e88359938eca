// SPDX-License-Identifier: Apache-2.0
#include "tests/core/ops/rewrites/rewrites_test_util.h"

namespace mge {
namespace {

// Returns a model with the constants of Gelu in the given type. x is the result of an Add, as behind a dense layer.
std::string Model(const std::string& body, const std::string& dtype = "float32") {
  std::string text = "input a : " + dtype + "[2,3,8]\nconst rb = " + dtype + "[8]<0>\nx = Add(a, rb)\n";
  for (auto [name, value] : {std::pair{"sqrt2", "1.4142135623730951"},
                             {"isqrt2", "0.7071067811865476"},
                             {"one", "1"},
                             {"half", "0.5"},
                             {"two", "2"},
                             {"three", "3"},
                             {"c", "0.7978845608028654"},
                             {"k", "0.044715"},
                             {"wrong", "0.7"}}) {
    text += std::string("const ") + name + " = " + dtype + "[]<" + value + ">\n";
  }
  return text + body + "output y\n";
}

const char kErf[] = "d = Div(x, sqrt2)\ne = Erf(d)\np = Add(e, one)\n";
const char kCube[] = "q = Pow(x, three)\nm = Mul(k, q)\ns = Add(x, m)\nd = Mul(c, s)\ne = Tanh(d)\np = Add(one, e)\n";

TEST(GeluRewrite, MatchesEveryOrderOfTheFactors) {
  for (std::string tail : {"h = Mul(x, p)\ny = Mul(h, half)\n", "h = Mul(x, half)\ny = Mul(h, p)\n",
                           "h = Mul(half, p)\ny = Mul(x, h)\n", "h = Mul(p, x)\ny = Div(h, two)\n"}) {
    EXPECT_EQ(AfterRewrite("gelu", Model(kErf + tail)), "Add Gelu") << tail;
    EXPECT_EQ(AfterRewrite("gelu", Model(kCube + tail)), "Add Gelu") << tail;
  }
  EXPECT_EQ(AfterRewrite("gelu", Model("d = Mul(isqrt2, x)\ne = Erf(d)\nf = Mul(e, half)\np = Add(half, f)\n"
                                       "y = Mul(p, x)\n")),
            "Add Gelu");
}

TEST(GeluRewrite, MatchesTheFactoredTanhForm) {
  EXPECT_EQ(AfterRewrite("gelu", Model("q = Mul(x, x)\nm = Mul(q, k)\ns = Add(m, one)\nu = Mul(x, c)\nd = Mul(u, s)\n"
                                       "e = Tanh(d)\np = Add(e, one)\nh = Mul(x, half)\ny = Mul(h, p)\n")),
            "Add Gelu");
}

TEST(GeluRewrite, WorksInEveryFloatingType) {
  std::string body = std::string(kErf) + "h = Mul(x, p)\ny = Mul(h, half)\n";
  EXPECT_EQ(AfterRewrite("gelu", Model(body, "float64"), 1e-12), "Add Gelu");
  EXPECT_EQ(AfterRewrite("gelu", Model(body, "float16"), 4e-3), "Add Gelu");
  EXPECT_EQ(AfterRewrite("gelu", Model(body, "bfloat16"), 4e-2), "Add Gelu");
}

TEST(GeluRewrite, RefusesOtherConstantsAndOtherArguments) {
  EXPECT_EQ(AfterRewrite("gelu", Model("d = Mul(x, wrong)\ne = Erf(d)\np = Add(e, one)\nh = Mul(x, p)\n"
                                       "y = Mul(h, half)\n")),
            "Add Mul Erf Add Mul Mul");
  EXPECT_EQ(AfterRewrite("gelu", Model(std::string(kErf) + "h = Mul(a, p)\ny = Mul(h, half)\n")), "Add Div Erf Add Mul Mul");
}

TEST(GeluRewrite, DoesNotApplyIfOtherNodesUseInnerValues) {
  std::string body = std::string(kErf) + "h = Mul(x, p)\ny = Mul(h, half)\n";
  EXPECT_EQ(AfterRewrite("gelu", Model(body) + "output e\n"), "Add Div Erf Add Mul Mul");
  EXPECT_EQ(AfterRewrite("gelu", Model(body + "z = Neg(p)\noutput z\n")), "Add Div Erf Add Mul Mul Neg");
  EXPECT_EQ(AfterRewrite("gelu", Model(body) + "output x\n"), "Add Gelu");  // other nodes may read the input
}

TEST(GeluRewrite, RefusesConstantsThatRaiseTheRank) {
  EXPECT_EQ(AfterRewrite("gelu", Model(std::string("const wide = float32[1,1,1,1]<0.5>\n") + kErf +
                                       "h = Mul(x, p)\ny = Mul(h, wide)\n")),
            "Add Div Erf Add Mul Mul");
}

}  // namespace
}  // namespace mge
