// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <type_traits>

#include "core/ops/families/unary.h"
#include "core/ops/gradient.h"

namespace mge::op_abs {
namespace {

absl::Status Eval(EvalContext& ctx) {
  return EvalUnaryNumeric(ctx, [](auto x) {
    using T = decltype(x);
    if constexpr (std::is_floating_point_v<T>) {
      return std::abs(x);
    } else if constexpr (std::is_signed_v<T>) {
      // Unsigned arithmetic, because the lowest number has no positive counterpart. The result is that number itself.
      using U = std::make_unsigned_t<T>;
      return x < 0 ? static_cast<T>(U(0) - static_cast<U>(x)) : x;
    } else {
      return x;
    }
  });
}

absl::Status Gradient(GradientContext& g) { return g.Give(0, g.dy() * Unary("Sign", g.x())); }

}  // namespace

MGE_OP(abs) = {
    .name = "Abs",
    .doc = "|x|. The lowest number of a signed integer type is returned unchanged.",
    .inputs = {{"X", kNumeric}},
    .outputs = {{"Y"}},
    .infer = SameTypeAsFirst,
    .eval = Eval,
    .upgrade = DropConsumedInputs,
    .gradient = Gradient,
    .in_place = {{0, 0}},
    .traits = kElementwise,
};

}  // namespace mge::op_abs
