// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "core/ops/families/unary.h"
#include "core/ops/gradient.h"

namespace mge::op_softsign {
namespace {

absl::Status Eval(EvalContext& ctx) {
  return EvalUnaryFloating(ctx, [](auto x) { return x / (1 + std::abs(x)); });
}

absl::Status Gradient(GradientContext& g) {
  const Term d = 1 + Unary("Abs", g.x());
  return g.Give(0, g.dy() / (d * d));
}

}  // namespace

MGE_OP(softsign) = {
    .name = "Softsign",
    .doc = "x / (1 + |x|).",
    .inputs = {{"X", kFloating}},
    .outputs = {{"Y"}},
    .infer = SameTypeAsFirst,
    .eval = Eval,
    .gradient = Gradient,
    .in_place = {{0, 0}},
    .traits = kElementwise,
};

}  // namespace mge::op_softsign
