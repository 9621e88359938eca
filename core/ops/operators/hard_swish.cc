// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "core/ops/families/unary.h"
#include "core/ops/gradient.h"

namespace mge::op_hard_swish {
namespace {

absl::Status Eval(EvalContext& ctx) {
  return EvalUnaryFloating(ctx, [](auto x) {
    using T = decltype(x);
    return x * std::max(T(0), std::min(T(1), x / 6 + T(0.5)));
  });
}

absl::Status Gradient(GradientContext& g) {
  const Term inner = g.Where(g.x() < 3, g.dy() * (g.x() / 3 + 0.5), g.dy());
  return g.Give(0, g.Where(g.x() > -3, inner, g.Number(0)));
}

}  // namespace

MGE_OP(hard_swish) = {
    .name = "HardSwish",
    .doc = "x * max(0, min(1, x / 6 + 0.5)).",
    .inputs = {{"X", kFloating}},
    .outputs = {{"Y"}},
    .infer = SameTypeAsFirst,
    .eval = Eval,
    .gradient = Gradient,
    .in_place = {{0, 0}},
    .traits = kElementwise,
    .since = 14,
};

}  // namespace mge::op_hard_swish
