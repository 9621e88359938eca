// SPDX-License-Identifier: Apache-2.0
// The elementwise operators of the core and the list that the SDK gives to backends (mge/plugin/elementwise.hpp).
#include <algorithm>
#include <cmath>
#include <functional>
#include <numbers>
#include <set>
#include <string>
#include <string_view>

#include "core/ops/gradient.h"
#include "mge/plugin/elementwise.hpp"
#include "tests/support/ops_test_util.h"

namespace mge {
namespace {

std::set<std::string> NumberAttributesOf(const OpDef& def) {
  std::set<std::string> names;
  for (const Attr& a : def.attrs) {
    const bool chooses = a.name == "fmod";  // another function
    if (!a.name.starts_with('_') && !chooses && (a.type == AttrType::kInt || a.type == AttrType::kFloat))
      names.emplace(a.name);
  }
  return names;
}

TEST(ElementwiseList, HasEveryElementwiseOperatorOfOnnx) {
  for (const OpDef* def : AllOps()) {
    const bool replaced = def->gradient == ReplacementGradient;  // SwiGLU: a rewrite makes others of it
    if (!def->domain.empty() || !def->Is(kElementwise) || def->Is(kHostOnly) || replaced) continue;
    EXPECT_TRUE(std::ranges::any_of(kElementwiseOps, [&](const ElementwiseOp& op) { return op.name == def->name; }))
        << def->name << " has no row in sdk/include/mge/plugin/elementwise.hpp";
  }
}

TEST(ElementwiseList, AgreesWithTheRowsOfTheCore) {
  for (const ElementwiseOp& op : kElementwiseOps) {
    SCOPED_TRACE(op.name);
    const OpDef* def = FindOp("", op.name);
    ASSERT_NE(def, nullptr);
    const int inputs = def->inputs.size();
    const bool variadic = def->inputs[inputs - 1].arity == Arity::kVariadic;
    std::set<std::string> parameters = {op.a, op.b};
    parameters.erase("");
    switch (op.form) {
      case ElementwiseForm::kUnary:
        EXPECT_EQ(inputs, 1);
        EXPECT_EQ(NumberAttributesOf(*def), parameters);
        break;
      case ElementwiseForm::kBinary:
        EXPECT_EQ(inputs, 2);
        EXPECT_EQ(NumberAttributesOf(*def), parameters);
        break;
      case ElementwiseForm::kVariadic:
      case ElementwiseForm::kMean: EXPECT_TRUE(variadic); break;
      default: EXPECT_TRUE(parameters.empty());
    }
  }
}

// A function of one number as ONNX's page defines it, with the default attributes.
struct Formula {
  std::string_view op;
  std::function<double(double)> f;
};

double ErfOf(double x) { return std::erf(x); }
double SigmoidOf(double x) { return 1 / (1 + std::exp(-x)); }
double SoftplusOf(double x) { return std::log(1 + std::exp(x)); }

const Formula kFormulas[] = {
    {"Abs", [](double x) { return x < 0 ? -x : x; }},
    {"Acos", [](double x) { return std::numbers::pi / 2 - std::asin(x); }},
    {"Acosh", [](double x) { return std::log(x + std::sqrt(x * x - 1)); }},
    {"Asin", [](double x) { return std::atan2(x, std::sqrt(1 - x * x)); }},
    {"Asinh", [](double x) { return std::log(x + std::sqrt(x * x + 1)); }},
    {"Atan", [](double x) { return std::atan2(x, 1.0); }},
    {"Atanh", [](double x) { return std::log((1 + x) / (1 - x)) / 2; }},
    {"Ceil", [](double x) { return -std::floor(-x); }},
    {"Celu", [](double x) { return std::max(0.0, x) + std::min(0.0, std::exp(x) - 1); }},
    {"Cos", [](double x) { return std::sin(x + std::numbers::pi / 2); }},
    {"Cosh", [](double x) { return (std::exp(x) + std::exp(-x)) / 2; }},
    {"Elu", [](double x) { return x < 0 ? std::exp(x) - 1 : x; }},
    {"Erf", ErfOf},
    {"Exp", [](double x) { return std::pow(std::numbers::e, x); }},
    {"Floor", [](double x) { return -std::ceil(-x); }},
    {"Gelu", [](double x) { return 0.5 * x * (1 + ErfOf(x / std::sqrt(2))); }},
    {"HardSigmoid", [](double x) { return std::max(0.0, std::min(1.0, 0.2 * x + 0.5)); }},
    {"HardSwish", [](double x) { return x * std::max(0.0, std::min(1.0, x / 6 + 0.5)); }},
    {"LeakyRelu", [](double x) { return x < 0 ? 0.01 * x : x; }},
    {"Log", [](double x) { return std::log2(x) / std::numbers::log2e; }},
    {"Mish", [](double x) { return x * std::tanh(SoftplusOf(x)); }},
    {"Neg", [](double x) { return 0 - x; }},
    {"Reciprocal", [](double x) { return std::pow(x, -1); }},
    {"Relu", [](double x) { return std::max(0.0, x); }},
    {"Round", [](double x) { return std::rint(x); }},
    {"Selu", [](double x) { return 1.0507009873554805 * (x > 0 ? x : 1.6732632423543772 * (std::exp(x) - 1)); }},
    {"Shrink", [](double x) { return x < -0.5 || x > 0.5 ? x : 0; }},
    {"Sigmoid", SigmoidOf},
    {"Sign", [](double x) { return x > 0   ? 1
                                   : x < 0 ? -1
                                           : 0; }},
    {"Sin", [](double x) { return std::cos(x - std::numbers::pi / 2); }},
    {"Sinh", [](double x) { return (std::exp(x) - std::exp(-x)) / 2; }},
    {"Softplus", SoftplusOf},
    {"Softsign", [](double x) { return x / (1 + std::abs(x)); }},
    {"Sqrt", [](double x) { return std::pow(x, 0.5); }},
    {"Swish", [](double x) { return x * SigmoidOf(x); }},
    {"Tan", [](double x) { return std::sin(x) / std::cos(x); }},
    {"Tanh", [](double x) { return 1 - 2 / (std::exp(2 * x) + 1); }},
    {"ThresholdedRelu", [](double x) { return x > 1 ? x : 0; }},
};

TEST(ElementwiseRows, ComputeTheFormulasOfOnnx) {
  std::set<std::string_view> tested = {"IsInf", "IsNaN", "Not", "BitwiseNot"};  // not functions of reals
  for (const Formula& row : kFormulas) {
    tested.insert(row.op);
    for (const double x : {-7.25, -1.5, -0.75, -0.25, 0.0, 0.25, 0.75, 1.5, 2.5, 7.25}) {
      const auto result = RunText(fmt::format("const x = float64[1]<{}>\ny = {}(x)\noutput y\n", x, row.op));
      ASSERT_TRUE(result.ok()) << result.status();
      const double have = (*result)[0].tensor.Data<double>()[0], want = row.f(x);
      if (std::isnan(want) || std::isinf(want)) {
        EXPECT_FALSE(std::isfinite(have)) << row.op << " of " << x;
      } else {
        EXPECT_NEAR(have, want, 1e-6 * std::max(1.0, std::abs(want))) << row.op << " of " << x;
      }
    }
  }
  for (const ElementwiseOp& op : kElementwiseOps) {
    if (op.form != ElementwiseForm::kUnary) continue;
    EXPECT_TRUE(tested.contains(op.name)) << op.name << " has no formula";
  }
}

}  // namespace
}  // namespace mge
