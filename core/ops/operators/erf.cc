// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <numbers>
#include <type_traits>

#include "core/ops/families/unary.h"
#include "core/ops/gradient.h"

namespace mge::op_erf {
namespace {

absl::Status Eval(EvalContext& ctx) {
  return EvalUnaryNumeric(ctx, [](auto x) {
    using T = decltype(x);
    if constexpr (std::is_floating_point_v<T>) {
      return std::erf(x);
    } else {
      return std::erf(static_cast<double>(x));
    }
  });
}

absl::Status Gradient(GradientContext& g) {
  return g.Give(0, g.dy() * (2 * std::numbers::inv_sqrtpi) * Unary("Exp", -g.x() * g.x()));
}

}  // namespace

MGE_OP(erf) = {
    .name = "Erf",
    .doc = "The error function. Integers are rounded towards zero.",
    .inputs = {{"X", kNumeric}},
    .outputs = {{"Y"}},
    .infer = SameTypeAsFirst,
    .eval = Eval,
    .gradient = Gradient,
    .in_place = {{0, 0}},
    .traits = kElementwise,
    .since = 9,
};

}  // namespace mge::op_erf
