// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "core/ops/families/unary.h"
#include "core/ops/gradient.h"

namespace mge::op_sqrt {
namespace {

absl::Status Eval(EvalContext& ctx) {
  return EvalUnaryFloating(ctx, [](auto x) { return std::sqrt(x); });
}

absl::Status Gradient(GradientContext& g) { return g.Give(0, g.dy() * 0.5 / g.y()); }

}  // namespace

MGE_OP(sqrt) = {
    .name = "Sqrt",
    .doc = "Square root. NaN for negative numbers.",
    .inputs = {{"X", kFloating}},
    .outputs = {{"Y"}},
    .infer = SameTypeAsFirst,
    .eval = Eval,
    .upgrade = DropConsumedInputs,
    .gradient = Gradient,
    .in_place = {{0, 0}},
    .traits = kElementwise,
    .examples = {"(T[2,19]@0:9)", "(T[70001]@0:9)", "(T[67]@special)"},
};

}  // namespace mge::op_sqrt
