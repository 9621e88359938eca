// SPDX-License-Identifier: Apache-2.0
#include "core/ops/families/sigmoid.h"
#include "core/ops/families/unary.h"
#include "core/ops/gradient.h"

namespace mge::op_swish {
namespace {

absl::Status Eval(EvalContext& ctx) {
  const float alpha = ctx.attrs().Float("alpha");
  return EvalUnaryFloating(ctx, [=](auto x) { return Swish(x, alpha); });
}

absl::Status Gradient(GradientContext& g) {
  const double alpha = g.attrs().Float("alpha");
  const Term s = Unary("Sigmoid", g.x() * alpha);
  return g.Give(0, g.dy() * (s + g.y() * (1 - s) * alpha));
}

}  // namespace

MGE_OP(swish) = {
    .name = "Swish",
    .doc = "x * sigmoid(alpha * x).",
    .inputs = {{"X", kFloating}},
    .outputs = {{"Y"}},
    .attrs = {{"alpha", 1.0f, "the factor inside the sigmoid"}},
    .infer = SameTypeAsFirst,
    .eval = Eval,
    .gradient = Gradient,
    .in_place = {{0, 0}},
    .traits = kElementwise,
    .since = 24,
    .examples = {"(T[3,37])", "(T[41]) {alpha=1.702}", "(T[70001])", "(T[67]@special)", "(T[37]@-100:100)"},
};

}  // namespace mge::op_swish
