// SPDX-License-Identifier: Apache-2.0
#include "core/ops/families/unary.h"

namespace mge::op_leaky_relu {
namespace {

absl::Status Eval(EvalContext& ctx) {
  float attr_alpha = ctx.attrs().Float("alpha", 0.01f);
  return EvalUnaryFloating(ctx, [=](auto x) {
    using T = decltype(x);
    T alpha = attr_alpha;
    return x < 0 ? alpha * x : x;
  });
}

}  // namespace

MGE_OP(leaky_relu) = {
    .name = "LeakyRelu",
    .doc = "x if it is not negative, else alpha * x.",
    .inputs = {{"X", kFloating}},
    .outputs = {{"Y"}},
    .attrs = {{"alpha", AttrType::kFloat}},
    .infer = SameTypeAsFirst,
    .eval = Eval,
    .upgrade = DropConsumedInputs,
    .in_place = {{0, 0}},
    .traits = kElementwise,
};

}  // namespace mge::op_leaky_relu
