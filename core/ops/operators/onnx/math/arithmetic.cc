// SPDX-License-Identifier: Apache-2.0
// Arithmetic of two numbers, with broadcasting.
#include <cmath>
#include <functional>
#include <type_traits>

#include "core/ops/families/binary.h"
#include "core/ops/gradient.h"

namespace mge::op_arithmetic {
namespace {

using G = GradientContext;

constexpr OpDef Arithmetic(std::string_view name, std::string_view doc, EvalFn eval, GradientFn gradient, OpDef more) {
  more.eval = eval;
  more.gradient = gradient;
  return BinaryRow(name, doc, kNumeric, more);
}

// Returns an evaluator of `f`, which wraps integers around.
template <typename F>
constexpr EvalFn Wraps(F) {
  return [](EvalContext& ctx) { return EvalBinary(ctx, kForNumeric, [](auto x, auto y) { return Wrapping(x, y, F{}); }); };
}

// Evaluates z = f(x, y) where integers are not divided by zero.
template <typename F>
absl::Status EvalDivision(EvalContext& ctx, F f) {
  bool by_zero = false;
  MGE_RETURN_IF_ERROR(EvalBinary(ctx, kForNumeric, [&](auto a, auto b) {
    using T = decltype(a);
    if (std::is_integral_v<T> && b == T(0)) {
      by_zero = true;
      return T(0);
    }
    return f(a, b);
  }));
  return by_zero ? DividedByZero(ctx) : absl::OkStatus();
}

template <typename T>
T Quotient(T a, T b) {
  // The quotient of the lowest integer wraps around, as in ONNX Runtime; the processor would trap.
  if constexpr (std::is_integral_v<T> && std::is_signed_v<T>) {
    if (b == T(-1)) return Wrapping(T(0), a, std::minus<>());
  }
  return static_cast<T>(a / b);
}

template <typename T>
T Remainder(T a, T b, bool sign_of_dividend) {
  if constexpr (std::is_floating_point_v<T>) {
    const T r = std::fmod(a, b);
    if (sign_of_dividend || std::isnan(r)) return r;
    if (r == 0) return std::copysign(r, b);
    return (r < 0) == (b < 0) ? r : std::isinf(b) ? b : r + b;
  } else {
    if constexpr (std::is_signed_v<T>) {
      if (b == T(-1)) return T(0);  // the lowest integer % -1 causes a trap on some machines
    }
    T r = static_cast<T>(a % b);
    return !sign_of_dividend && r != 0 && (r < 0) != (b < 0) ? static_cast<T>(r + b) : r;
  }
}

absl::Status EvalMod(EvalContext& ctx) {
  return EvalDivision(ctx, [fmod = ctx.attrs().Int("fmod") != 0](auto a, auto b) { return Remainder(a, b, fmod); });
}

absl::Status ModGradient(G& g) {
  MGE_RETURN_IF_ERROR(g.SetSum(0, g.dy()));
  return g.wants(1) ? g.SetSum(1, g.dy() * ((g.y() - g.x()) / g.x(1))) : absl::OkStatus();
}

// Returns the gradient rule of an operator with the gradients `f(g)` and `h(g)`.
template <typename F, typename H>
constexpr GradientFn GradientsOf(F, H) {
  return [](G& g) {
    MGE_RETURN_IF_ERROR(g.SetSum(0, F{}(g)));
    return g.SetSum(1, H{}(g));
  };
}

constexpr OpDef kRows[] = {
    Arithmetic("Add", "A + B, with broadcasting. Integers wrap around.", Wraps([](auto a, auto b) { return a + b; }),
               GradientsOf([](G& g) { return g.dy(); }, [](G& g) { return g.dy(); }),
               OldBroadcast({.traits = kCommutative})),
    Arithmetic(
        "Div", "A / B, with broadcasting. Integers are rounded towards zero and wrap around.",
        [](EvalContext& ctx) { return EvalDivision(ctx, [](auto a, auto b) { return Quotient(a, b); }); },
        GradientsOf([](G& g) { return g.dy() / g.x(1); }, [](G& g) { return -g.dy() * g.y() / g.x(1); }),
        OldBroadcast({.examples = {"(T[2,3,7], T[7]@1:5)", "(T[3,1], T[1,5]@1:5)", "(T[67]@-9:9, T[]@2:3)",
                                   "(T[70001], T[70001]@1:5)", "(T[67]@special, T[67]@special)", "(T[3,7]@1:5, =0)"}})),
    Arithmetic("Mod", "Remainder with the sign of B. With fmod = 1, it has the sign of A.", EvalMod, ModGradient,
               {.attrs = {{"fmod", 0, "not 0: the sign is that of the dividend"}},
                .since = 10,
                .examples = {"(T[2,3,7], T[7]@1:5) {fmod=1}", "(T[31], T[31]@1:5)", "(T[70001]@0:9, T[70001]@1:5)"}}),
    Arithmetic("Mul", "A * B, with broadcasting. Integers wrap around.", Wraps([](auto a, auto b) { return a * b; }),
               GradientsOf([](G& g) { return g.dy() * g.x(1); }, [](G& g) { return g.dy() * g.x(0); }),
               OldBroadcast({.traits = kCommutative})),
    Arithmetic("Sub", "A - B, with broadcasting. Integers wrap around.", Wraps([](auto a, auto b) { return a - b; }),
               GradientsOf([](G& g) { return g.dy(); }, [](G& g) { return -g.dy(); }), OldBroadcast()),
};

}  // namespace

MGE_OPS(arithmetic) = kRows;

}  // namespace mge::op_arithmetic
