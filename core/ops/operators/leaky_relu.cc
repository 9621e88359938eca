// SPDX-License-Identifier: Apache-2.0
#include "core/ops/families/unary.h"
#include "core/ops/gradient.h"

namespace mge::op_leaky_relu {
namespace {

absl::Status Eval(EvalContext& ctx) {
  float attr_alpha = ctx.attrs().Float("alpha");
  return EvalUnaryFloating(ctx, [=](auto x) {
    using T = decltype(x);
    T alpha = attr_alpha;
    return x < 0 ? alpha * x : x;
  });
}

absl::Status Gradient(GradientContext& g) {
  return g.Give(0, g.Where(g.x() > 0, g.dy(), g.dy() * g.attrs().Float("alpha")));
}

}  // namespace

MGE_OP(leaky_relu) = {
    .name = "LeakyRelu",
    .doc = "x if it is not negative, else alpha * x.",
    .inputs = {{"X", kFloating}},
    .outputs = {{"Y"}},
    .attrs = {{"alpha", 0.01f, "the slope below 0"}},
    .infer = SameTypeAsFirst,
    .eval = Eval,
    .upgrade = DropConsumedInputs,
    .gradient = Gradient,
    .in_place = {{0, 0}},
    .traits = kElementwise,
};

}  // namespace mge::op_leaky_relu
