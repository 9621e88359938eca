// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "core/ops/families/unary.h"
#include "core/ops/gradient.h"

namespace mge::op_celu {
namespace {

absl::Status Eval(EvalContext& ctx) {
  float attr_alpha = ctx.attrs().Float("alpha");
  return EvalUnaryFloating(ctx, [=](auto x) {
    using T = decltype(x);
    T alpha = attr_alpha;
    return x < 0 ? alpha * std::expm1(x / alpha) : x;
  });
}

absl::Status Gradient(GradientContext& g) {
  return g.Give(0, g.Where(g.x() > 0, g.dy(), g.dy() * (g.y() / g.attrs().Float("alpha") + 1)));
}

}  // namespace

MGE_OP(celu) = {
    .name = "Celu",
    .doc = "max(0, x) + min(0, alpha * (exp(x / alpha) - 1)).",
    .inputs = {{"X", kFloating}},
    .outputs = {{"Y"}},
    .attrs = {{"alpha", 1.0f, "the limit below 0, negated"}},
    .infer = SameTypeAsFirst,
    .eval = Eval,
    .gradient = Gradient,
    .in_place = {{0, 0}},
    .traits = kElementwise,
    .since = 12,
};

}  // namespace mge::op_celu
