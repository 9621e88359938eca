// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>

#include "core/ops/families/unary.h"
#include "core/ops/gradient.h"

namespace mge::op_mish {
namespace {

absl::Status Eval(EvalContext& ctx) {
  return EvalUnaryFloating(ctx, [](auto x) {
    using T = decltype(x);
    T softplus = std::max(x, T(0)) + std::log1p(std::exp(-std::abs(x)));
    return x * std::tanh(softplus);
  });
}

absl::Status Gradient(GradientContext& g) {
  const Term t = Unary("Tanh", Unary("Softplus", g.x()));
  return g.Give(0, g.dy() * (t + g.x() * (1 - t * t) * Unary("Sigmoid", g.x())));
}

}  // namespace

MGE_OP(mish) = {
    .name = "Mish",
    .doc = "x * tanh(log(1 + exp(x))).",
    .inputs = {{"X", kFloating}},
    .outputs = {{"Y"}},
    .infer = SameTypeAsFirst,
    .eval = Eval,
    .gradient = Gradient,
    .in_place = {{0, 0}},
    .traits = kElementwise,
    .since = 18,
};

}  // namespace mge::op_mish
