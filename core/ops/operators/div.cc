// SPDX-License-Identifier: Apache-2.0
#include <functional>
#include <type_traits>

#include "core/ops/families/binary.h"
#include "core/ops/gradient.h"

namespace mge::op_div {
namespace {

absl::Status Eval(EvalContext& ctx) {
  bool by_zero = false;
  MGE_RETURN_IF_ERROR(EvalBinary(ctx, kForNumeric, [&](auto a, auto b) {
    using T = decltype(a);
    if constexpr (std::is_integral_v<T>) {
      if (b == 0) {
        by_zero = true;
        return T(0);
      }
      // The quotient of the lowest integer wraps around, as in ONNX Runtime; the processor would trap.
      if (std::is_signed_v<T> && b == static_cast<T>(-1)) return Wrapping(T(0), a, std::minus<>());
    }
    return static_cast<T>(a / b);
  }));
  return by_zero ? DividedByZero(ctx) : absl::OkStatus();
}

absl::Status Gradient(GradientContext& g) {
  MGE_RETURN_IF_ERROR(g.GiveSum(0, g.dy() / g.x(1)));
  return g.GiveSum(1, -g.dy() * g.y() / g.x(1));
}

}  // namespace

MGE_OP(div) = {
    .name = "Div",
    .doc = "A / B, with broadcasting. Integers are rounded towards zero and wrap around.",
    .inputs = {{"A", kNumeric}, {"B", kNumeric}},
    .outputs = {{"C"}},
    .attrs = {{"_axis", AttrType::kInt}},
    .infer = BinaryInfer,
    .eval = Eval,
    .upgrade = UpgradeOldBroadcast,
    .gradient = Gradient,
    .in_place = {{0, 0}, {0, 1}},
    .traits = kElementwise,
    .examples = {"(T[2,3,7], T[7]@1:5)", "(T[3,1], T[1,5]@1:5)", "(T[67]@-9:9, T[]@2:3)", "(T[70001], T[70001]@1:5)",
                 "(T[67]@special, T[67]@special)", "(T[3,7]@1:5, =0)"},
};

}  // namespace mge::op_div
