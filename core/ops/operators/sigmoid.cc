// SPDX-License-Identifier: Apache-2.0
#include "core/ops/families/sigmoid.h"

#include "core/ops/families/unary.h"
#include "core/ops/gradient.h"

namespace mge::op_sigmoid {
namespace {

absl::Status Eval(EvalContext& ctx) {
  return EvalUnaryFloating(ctx, [](auto x) { return Sigmoid(x); });
}

absl::Status Gradient(GradientContext& g) { return g.Give(0, g.dy() * g.y() * (1 - g.y())); }

}  // namespace

MGE_OP(sigmoid) = {
    .name = "Sigmoid",
    .doc = "1 / (1 + exp(-x)).",
    .inputs = {{"X", kFloating}},
    .outputs = {{"Y"}},
    .infer = SameTypeAsFirst,
    .eval = Eval,
    .upgrade = DropConsumedInputs,
    .gradient = Gradient,
    .in_place = {{0, 0}},
    .traits = kElementwise,
};

}  // namespace mge::op_sigmoid
