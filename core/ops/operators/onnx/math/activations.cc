// SPDX-License-Identifier: Apache-2.0
// Activation functions of one number.
#include <algorithm>
#include <cmath>
#include <numbers>
#include <type_traits>

#include "core/ops/families/convert.h"
#include "core/ops/families/sigmoid.h"
#include "core/ops/families/unary.h"
#include "core/ops/infer_checks.h"
#include "core/ops/op_helpers.h"

namespace mge::op_activations {
namespace {

template <typename T>
T Gelu(T x) {
  return T(0.5) * x * (1 + std::erf(x / std::numbers::sqrt2_v<T>));
}

template <typename T>
T GeluTanh(T x) {
  constexpr T kScale = std::numbers::inv_sqrtpi_v<T> * std::numbers::sqrt2_v<T>;  // sqrt(2/pi)
  return T(0.5) * x * (1 + std::tanh(kScale * (x + T(0.044715) * x * x * x)));
}

double Alpha(const G& g) { return g.attrs().Float("alpha"); }

// Returns dy where the condition is true, else 0.
Term Passes(G& g, ValueId condition) { return g.Where(condition, g.dy(), g.Number(0)); }

template <typename T>
T Softplus(T x) {
  return std::max(x, T(0)) + std::log1p(std::exp(-std::abs(x)));  // without overflow
}

absl::Status InferGelu(InferContext& ctx) {
  MGE_RETURN_IF_ERROR(ReadChoice(ctx.attrs(), "approximate", {"none", "tanh"}).status());
  return SameTypeAsFirst(ctx);
}

absl::Status EvalGelu(EvalContext& ctx) {
  if (ctx.attrs().Text("approximate") == "none") return EvalUnary(ctx, kForFloating, [](auto x) { return Gelu(x); });
  return EvalUnary(ctx, kForFloating, [](auto x) { return GeluTanh(x); });
}

Term GeluGradient(G& g) {
  const Term x = g.x();
  if (g.attrs().Text("approximate") == "none") {
    const Term density = Unary("Exp", x * x * -0.5) * (std::numbers::inv_sqrtpi / std::numbers::sqrt2);
    return g.dy() * (0.5 * (1 + Unary("Erf", x / std::numbers::sqrt2)) + x * density);
  }
  const double scale = std::numbers::sqrt2 * std::numbers::inv_sqrtpi, cubic = 0.044715;
  const Term t = Unary("Tanh", x * (1 + x * x * cubic) * scale);
  return g.dy() * (0.5 * (1 + t) + x * (1 - t * t) * (1 + x * x * (3 * cubic)) * (0.5 * scale));
}

absl::Status UpgradeSelu(Graph&, Node& node) {
  if (node.version >= 6) return absl::OkStatus();
  node.attrs.Remove("consumed_inputs");
  if (!node.attrs.Has("alpha")) node.attrs.Set("alpha", 1.6732f);
  if (!node.attrs.Has("gamma")) node.attrs.Set("gamma", 1.0507f);
  return absl::OkStatus();
}

absl::Status EvalShrink(EvalContext& ctx) {
  const float attr_lambd = ctx.attrs().Float("lambd"), attr_bias = ctx.attrs().Float("bias");
  return EvalUnary(ctx, kForNumeric, [=](auto v) {
    using T = decltype(v);
    // Integers are computed as reals, because lambd and bias may be fractional.
    using Real = std::conditional_t<std::is_integral_v<T>, double, T>;
    const Real r = static_cast<Real>(v), lambd = attr_lambd, bias = attr_bias;
    return FromReal<T>(r < -lambd ? r + bias : r > lambd ? r - bias : Real(0));
  });
}

constexpr OpDef kRows[] = {
    Floating("Celu", "max(0, x) + min(0, alpha * (exp(x / alpha) - 1)).",
             [](auto x, auto alpha) { return x < 0 ? alpha * std::expm1(x / alpha) : x; },
             {.attrs = {{"alpha", 1.0f, "the limit below 0, negated"}},
              .gradient = GradientOf([](G& g) { return g.Where(g.x() > 0, g.dy(), g.dy() * (g.y() / Alpha(g) + 1)); }),
              .since = 12}),
    Floating("Elu", "x if it is positive, else alpha * (exp(x) - 1).",
             [](auto x, auto alpha) { return x < 0 ? alpha * std::expm1(x) : x; },
             {.attrs = {{"alpha", 1.0f, "the limit below 0, negated"}},
              .upgrade = DropConsumedInputs,
              .gradient = GradientOf([](G& g) { return g.Where(g.x() > 0, g.dy(), g.dy() * (g.y() + Alpha(g))); }),
              .examples = {"(T[3,7]) {alpha=0.5}", "(T[70001])", "(T[67]@special)"}}),
    Floating(
        "Gelu", "x times the Gaussian distribution function of x. With approximate = tanh, the approximation by tanh.",
        EvalGelu,
        {.attrs = {{"approximate", "none", "none or tanh"}},
         .gradient = GradientOf([](G& g) { return GeluGradient(g); }),
         .since = 20,
         .examples = {"(T[3,37])", "(T[41]) {approximate=\"tanh\"}", "(T[70001])", "(T[67]@special)", "(T[37]@-100:100)"}},
        InferGelu),
    Floating("HardSigmoid", "max(0, min(1, alpha * x + beta)). NaN stays NaN.",
             [](auto x, auto alpha, auto beta) { return std::clamp(alpha * x + beta, decltype(x)(0), decltype(x)(1)); },
             {.attrs = {{"alpha", 0.2f, "the factor"}, {"beta", 0.5f, "the addend"}},
              .upgrade = DropConsumedInputs,
              .gradient = GradientOf([](G& g) {
                const Term inner = g.Where(g.y() < 1, g.dy() * Alpha(g), g.Number(0));
                return g.Where(g.y() > 0, inner, g.Number(0));
              })}),
    Floating("HardSwish", "x * max(0, min(1, x / 6 + 0.5)).",
             [](auto x) {
               using T = decltype(x);
               return x * std::max(T(0), std::min(T(1), x / 6 + T(0.5)));
             },
             {.gradient = GradientOf([](G& g) {
                const Term inner = g.Where(g.x() < 3, g.dy() * (g.x() / 3 + 0.5), g.dy());
                return g.Where(g.x() > -3, inner, g.Number(0));
              }),
              .since = 14}),
    Floating("LeakyRelu", "x if it is not negative, else alpha * x.",
             [](auto x, auto alpha) { return x < 0 ? alpha * x : x; },
             {.attrs = {{"alpha", 0.01f, "the slope below 0"}},
              .upgrade = DropConsumedInputs,
              .gradient = GradientOf([](G& g) { return g.Where(g.x() > 0, g.dy(), g.dy() * Alpha(g)); })}),
    Floating("Mish", "x * tanh(log(1 + exp(x))).", [](auto x) { return x * std::tanh(Softplus(x)); },
             {.gradient = GradientOf([](G& g) {
                const Term t = Unary("Tanh", Unary("Softplus", g.x()));
                return g.dy() * (t + g.x() * (1 - t * t) * Unary("Sigmoid", g.x()));
              }),
              .since = 18}),
    Numeric("Relu", "max(x, 0).", [](auto x) { return x < 0 ? decltype(x)(0) : x; },
            {.upgrade = DropConsumedInputs, .gradient = GradientOf([](G& g) { return Passes(g, g.y() > 0); })}),
    Floating("Selu", "gamma * (x if it is positive, else alpha * (exp(x) - 1)).",
             [](auto x, auto alpha, auto gamma) { return gamma * (x > 0 ? x : alpha * std::expm1(x)); },
             {.attrs = {{"alpha", 1.67326319217681884765625f, "the factor"},
                        {"gamma", 1.05070102214813232421875f, "the second factor"}},
              .upgrade = UpgradeSelu,
              .gradient = GradientOf([](G& g) {
                const double gamma = g.attrs().Float("gamma");
                return g.dy() * g.Where(g.x() > 0, g.Number(gamma), g.y() + Alpha(g) * gamma);
              })}),
    Numeric("Shrink", "x + bias if x < -lambd, x - bias if x > lambd, else 0.", EvalShrink,
            {.attrs = {{"bias", 0.0f, "the addend"}, {"lambd", 0.5f, "the limit below which the result is 0"}},
             .gradient = GradientOf([](G& g) { return Passes(g, Unary("Abs", g.x()) > g.attrs().Float("lambd")); }),
             .since = 9,
             .examples = {"(T[3,7]) {lambd=0.5, bias=0.1}", "(T[70001]) {lambd=0.5}"}}),
    Floating("Sigmoid", "1 / (1 + exp(-x)).", [](auto x) { return Sigmoid(x); },
             {.upgrade = DropConsumedInputs, .gradient = GradientOf([](G& g) { return g.dy() * g.y() * (1 - g.y()); })}),
    Floating("Softplus", "log(1 + exp(x)), computed without overflow.", [](auto x) { return Softplus(x); },
             {.gradient = GradientOf([](G& g) { return g.dy() * Unary("Sigmoid", g.x()); })}),
    Floating("Softsign", "x / (1 + |x|).", [](auto x) { return x / (1 + std::abs(x)); }, {.gradient = GradientOf([](G& g) {
                                                                                            const Term d =
                                                                                                1 + Unary("Abs", g.x());
                                                                                            return g.dy() / (d * d);
                                                                                          })}),
    Floating("Swish", "x * sigmoid(alpha * x).", [](auto x, auto alpha) { return Swish(x, alpha); },
             {.attrs = {{"alpha", 1.0f, "the factor inside the sigmoid"}},
              .gradient = GradientOf([](G& g) {
                const Term s = Unary("Sigmoid", g.x() * Alpha(g));
                return g.dy() * (s + g.y() * (1 - s) * Alpha(g));
              }),
              .since = 24,
              .examples = {"(T[3,37])", "(T[41]) {alpha=1.702}", "(T[70001])", "(T[67]@special)", "(T[37]@-100:100)"}}),
    Floating("Tanh", "Hyperbolic tangent.", [](auto x) { return std::tanh(x); },
             {.upgrade = DropConsumedInputs, .gradient = GradientOf([](G& g) { return g.dy() * (1 - g.y() * g.y()); })}),
    Floating("ThresholdedRelu", "x if it is greater than alpha, else 0.",
             [](auto x, auto alpha) { return x > alpha ? x : decltype(x)(0); },
             {.attrs = {{"alpha", 1.0f, "the limit up to which the result is 0"}},
              .gradient = GradientOf([](G& g) { return Passes(g, g.x() > Alpha(g)); })}),
};

}  // namespace

MGE_OPS(activations) = kRows;

}  // namespace mge::op_activations
