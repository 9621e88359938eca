// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <type_traits>

#include "core/ops/families/binary.h"
#include "core/ops/gradient.h"

namespace mge::op_mod {
namespace {

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

absl::Status Eval(EvalContext& ctx) {
  bool sign_of_dividend = ctx.attrs().Int("fmod") != 0;
  bool by_zero = false;
  MGE_RETURN_IF_ERROR(EvalBinary(ctx, kForNumeric, [&](auto a, auto b) {
    using T = decltype(a);
    if (std::is_integral_v<T> && b == 0) {
      by_zero = true;
      return T(0);
    }
    return Remainder<T>(a, b, sign_of_dividend);
  }));
  return by_zero ? DividedByZero(ctx) : absl::OkStatus();
}

absl::Status Gradient(GradientContext& g) {
  MGE_RETURN_IF_ERROR(g.GiveSum(0, g.dy()));
  return g.wants(1) ? g.GiveSum(1, g.dy() * ((g.y() - g.x()) / g.x(1))) : absl::OkStatus();
}

}  // namespace

MGE_OP(mod) = {
    .name = "Mod",
    .doc = "Remainder with the sign of B. With fmod = 1, it has the sign of A.",
    .inputs = {{"A", kNumeric}, {"B", kNumeric}},
    .outputs = {{"C"}},
    .attrs = {{"fmod", 0, "not 0: the sign is that of the dividend"}},
    .infer = BinaryInfer,
    .eval = Eval,
    .gradient = Gradient,
    .in_place = {{0, 0}, {0, 1}},
    .traits = kElementwise,
    .since = 10,
    .examples = {"(T[2,3,7], T[7]@1:5) {fmod=1}", "(T[31], T[31]@1:5)", "(T[70001]@0:9, T[70001]@1:5)"},
};

}  // namespace mge::op_mod
