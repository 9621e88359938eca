// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "core/ops/families/unary.h"
#include "core/ops/gradient.h"

namespace mge::op_elu {
namespace {

absl::Status Eval(EvalContext& ctx) {
  float attr_alpha = ctx.attrs().Float("alpha");
  return EvalUnaryFloating(ctx, [=](auto x) {
    using T = decltype(x);
    T alpha = attr_alpha;
    return x < 0 ? alpha * std::expm1(x) : x;
  });
}

absl::Status Gradient(GradientContext& g) {
  return g.Give(0, g.Where(g.x() > 0, g.dy(), g.dy() * (g.y() + g.attrs().Float("alpha"))));
}

}  // namespace

MGE_OP(elu) = {
    .name = "Elu",
    .doc = "x if it is positive, else alpha * (exp(x) - 1).",
    .inputs = {{"X", kFloating}},
    .outputs = {{"Y"}},
    .attrs = {{"alpha", 1.0f, "the limit below 0, negated"}},
    .infer = SameTypeAsFirst,
    .eval = Eval,
    .upgrade = DropConsumedInputs,
    .gradient = Gradient,
    .in_place = {{0, 0}},
    .traits = kElementwise,
    .examples = {"(T[3,7]) {alpha=0.5}", "(T[70001])", "(T[67]@special)"},
};

}  // namespace mge::op_elu
