// SPDX-License-Identifier: Apache-2.0
#include "core/ops/families/unary.h"
#include "core/ops/gradient.h"

namespace mge::op_thresholded_relu {
namespace {

absl::Status Eval(EvalContext& ctx) {
  float attr_alpha = ctx.attrs().Float("alpha");
  return EvalUnaryFloating(ctx, [=](auto x) {
    using T = decltype(x);
    T alpha = attr_alpha;
    return x > alpha ? x : T(0);
  });
}

absl::Status Gradient(GradientContext& g) {
  return g.Give(0, g.Where(g.x() > g.attrs().Float("alpha"), g.dy(), g.Number(0)));
}

}  // namespace

MGE_OP(thresholded_relu) = {
    .name = "ThresholdedRelu",
    .doc = "x if it is greater than alpha, else 0.",
    .inputs = {{"X", kFloating}},
    .outputs = {{"Y"}},
    .attrs = {{"alpha", 1.0f, "the limit up to which the result is 0"}},
    .infer = SameTypeAsFirst,
    .eval = Eval,
    .gradient = Gradient,
    .in_place = {{0, 0}},
    .traits = kElementwise,
};

}  // namespace mge::op_thresholded_relu
