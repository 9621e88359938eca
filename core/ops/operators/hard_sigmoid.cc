// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "core/ops/families/unary.h"
#include "core/ops/gradient.h"

namespace mge::op_hard_sigmoid {
namespace {

absl::Status Eval(EvalContext& ctx) {
  float attr_alpha = ctx.attrs().Float("alpha");
  float attr_beta = ctx.attrs().Float("beta");
  return EvalUnaryFloating(ctx, [=](auto x) {
    using T = decltype(x);
    T alpha = attr_alpha;
    T beta = attr_beta;
    return std::clamp(alpha * x + beta, T(0), T(1));  // NaN stays NaN
  });
}

absl::Status Gradient(GradientContext& g) {
  const Term inner = g.Where(g.y() < 1, g.dy() * g.attrs().Float("alpha"), g.Number(0));
  return g.Give(0, g.Where(g.y() > 0, inner, g.Number(0)));
}

}  // namespace

MGE_OP(hard_sigmoid) = {
    .name = "HardSigmoid",
    .doc = "max(0, min(1, alpha * x + beta)). NaN stays NaN.",
    .inputs = {{"X", kFloating}},
    .outputs = {{"Y"}},
    .attrs = {{"alpha", 0.2f, "the factor"}, {"beta", 0.5f, "the addend"}},
    .infer = SameTypeAsFirst,
    .eval = Eval,
    .upgrade = DropConsumedInputs,
    .gradient = Gradient,
    .in_place = {{0, 0}},
    .traits = kElementwise,
};

}  // namespace mge::op_hard_sigmoid
