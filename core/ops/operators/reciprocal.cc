// SPDX-License-Identifier: Apache-2.0
#include "core/ops/families/unary.h"
#include "core/ops/gradient.h"

namespace mge::op_reciprocal {
namespace {

absl::Status Eval(EvalContext& ctx) {
  return EvalUnaryFloating(ctx, [](auto x) { return 1 / x; });
}

absl::Status Gradient(GradientContext& g) { return g.Give(0, -g.dy() * g.y() * g.y()); }

}  // namespace

MGE_OP(reciprocal) = {
    .name = "Reciprocal",
    .doc = "1 / x.",
    .inputs = {{"X", kFloating}},
    .outputs = {{"Y"}},
    .infer = SameTypeAsFirst,
    .eval = Eval,
    .upgrade = DropConsumedInputs,
    .gradient = Gradient,
    .in_place = {{0, 0}},
    .traits = kElementwise,
    .examples = {"(T[3,7]@0.5:4)", "(T[70001]@0.5:4)", "(T[67]@special)"},
};

}  // namespace mge::op_reciprocal
