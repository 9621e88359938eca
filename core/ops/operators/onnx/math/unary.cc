// SPDX-License-Identifier: Apache-2.0
// Mathematical functions of one number.
#include "core/ops/families/unary.h"

#include <cmath>
#include <numbers>
#include <type_traits>

namespace mge::op_unary {
namespace {

template <typename T>
T Negated(T x) {
  if constexpr (std::is_floating_point_v<T>) {
    return -x;
  } else {
    // Unsigned arithmetic, because the lowest number has no positive counterpart. The result is that number itself.
    using U = std::make_unsigned_t<T>;
    return static_cast<T>(U(0) - static_cast<U>(x));
  }
}

constexpr OpDef kRows[] = {
    Numeric("Abs", "|x|. The lowest number of a signed integer type is returned unchanged.",
            [](auto x) {
              using T = decltype(x);
              if constexpr (std::is_floating_point_v<T>) {
                return std::abs(x);
              } else {
                return std::is_signed_v<T> && x < 0 ? Negated(x) : x;
              }
            },
            {.upgrade = DropConsumedInputs, .gradient = GradientOf([](G& g) { return g.dy() * Unary("Sign", g.x()); })}),
    Floating("Acos", "Inverse cosine, in radians.", [](auto x) { return std::acos(x); },
             {.gradient = GradientOf([](G& g) { return -g.dy() / Unary("Sqrt", 1 - g.x() * g.x()); }), .since = 7}),
    Floating("Acosh", "Inverse hyperbolic cosine.", [](auto x) { return std::acosh(x); },
             {.gradient = GradientOf([](G& g) { return g.dy() / Unary("Sqrt", g.x() * g.x() - 1); }),
              .since = 9,
              .examples = {"(T[3,7]@1:4)", "(T[70001]@1:4)", "(T[67]@special)"}}),
    Floating("Asin", "Inverse sine, in radians.", [](auto x) { return std::asin(x); },
             {.gradient = GradientOf([](G& g) { return g.dy() / Unary("Sqrt", 1 - g.x() * g.x()); }), .since = 7}),
    Floating("Asinh", "Inverse hyperbolic sine.", [](auto x) { return std::asinh(x); },
             {.gradient = GradientOf([](G& g) { return g.dy() / Unary("Sqrt", g.x() * g.x() + 1); }), .since = 9}),
    Floating("Atan", "Inverse tangent, in radians.", [](auto x) { return std::atan(x); },
             {.gradient = GradientOf([](G& g) { return g.dy() / (1 + g.x() * g.x()); }), .since = 7}),
    Floating("Atanh", "Inverse hyperbolic tangent.", [](auto x) { return std::atanh(x); },
             {.gradient = GradientOf([](G& g) { return g.dy() / (1 - g.x() * g.x()); }), .since = 9}),
    Floating("Ceil", "The smallest integer that is not less than x.", [](auto x) { return std::ceil(x); },
             {.upgrade = DropConsumedInputs, .gradient = ZeroGradient}),
    Floating("Cos", "Cosine of an angle in radians.", [](auto x) { return std::cos(x); },
             {.gradient = GradientOf([](G& g) { return -g.dy() * Unary("Sin", g.x()); }), .since = 7}),
    Floating("Cosh", "Hyperbolic cosine.", [](auto x) { return std::cosh(x); },
             {.gradient = GradientOf([](G& g) { return g.dy() * Unary("Sinh", g.x()); }), .since = 9}),
    Numeric(
        "Erf", "The error function. Integers are rounded towards zero.", [](auto x) { return std::erf(x); },
        {.gradient = GradientOf([](G& g) { return g.dy() * (2 * std::numbers::inv_sqrtpi) * Unary("Exp", -g.x() * g.x()); }),
         .since = 9}),
    Floating("Exp", "e to the power of x.", [](auto x) { return std::exp(x); },
             {.upgrade = DropConsumedInputs, .gradient = GradientOf([](G& g) { return g.dy() * g.y(); })}),
    Floating("Floor", "The largest integer that is not greater than x.", [](auto x) { return std::floor(x); },
             {.upgrade = DropConsumedInputs, .gradient = ZeroGradient}),
    Floating("Log", "Natural logarithm.", [](auto x) { return std::log(x); },
             {.upgrade = DropConsumedInputs,
              .gradient = GradientOf([](G& g) { return g.dy() / g.x(); }),
              .examples = {"(T[37]@0.1:4)", "(T[70001]@0.1:4)", "(T[67]@special)"}}),
    Numeric("Neg", "-x. The lowest number of a signed integer type is returned unchanged.",
            [](auto x) { return Negated(x); },
            {
                .inputs = {{"X", kFloating | kSigned}},
                .upgrade = DropConsumedInputs,
                .gradient = GradientOf([](G& g) { return -g.dy(); }),
            }),
    Floating("Reciprocal", "1 / x.", [](auto x) { return 1 / x; },
             {.upgrade = DropConsumedInputs,
              .gradient = GradientOf([](G& g) { return -g.dy() * g.y() * g.y(); }),
              .examples = {"(T[3,7]@0.5:4)", "(T[70001]@0.5:4)", "(T[67]@special)"}}),
    Floating("Round", "The nearest integer. Halves are rounded to even.", [](auto x) { return std::nearbyint(x); },
             {.gradient = ZeroGradient, .since = 11}),
    Numeric("Sign", "-1, 0 or 1 if x is negative, zero or positive. NaN stays NaN.",
            [](auto x) {
              using T = decltype(x);
              return x > 0 ? T(1) : std::is_signed_v<T> && x < 0 ? T(-1) : x;
            },
            {.gradient = ZeroGradient, .since = 9}),
    Floating("Sin", "Sine of an angle in radians.", [](auto x) { return std::sin(x); },
             {.gradient = GradientOf([](G& g) { return g.dy() * Unary("Cos", g.x()); }), .since = 7}),
    Floating("Sinh", "Hyperbolic sine.", [](auto x) { return std::sinh(x); },
             {.gradient = GradientOf([](G& g) { return g.dy() * Unary("Cosh", g.x()); }), .since = 9}),
    Floating("Sqrt", "Square root. NaN for negative numbers.", [](auto x) { return std::sqrt(x); },
             {.upgrade = DropConsumedInputs,
              .gradient = GradientOf([](G& g) { return g.dy() * 0.5 / g.y(); }),
              .examples = {"(T[2,19]@0:9)", "(T[70001]@0:9)", "(T[67]@special)"}}),
    Floating("Tan", "Tangent of an angle in radians.", [](auto x) { return std::tan(x); },
             {.gradient = GradientOf([](G& g) { return g.dy() * (1 + g.y() * g.y()); }), .since = 7}),
};

}  // namespace

MGE_OPS(unary) = kRows;

}  // namespace mge::op_unary
