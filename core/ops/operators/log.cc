// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "core/ops/families/unary.h"
#include "core/ops/gradient.h"

namespace mge::op_log {
namespace {

absl::Status Eval(EvalContext& ctx) {
  return EvalUnaryFloating(ctx, [](auto x) { return std::log(x); });
}

absl::Status Gradient(GradientContext& g) { return g.Give(0, g.dy() / g.x()); }

}  // namespace

MGE_OP(log) = {
    .name = "Log",
    .doc = "Natural logarithm.",
    .inputs = {{"X", kFloating}},
    .outputs = {{"Y"}},
    .infer = SameTypeAsFirst,
    .eval = Eval,
    .upgrade = DropConsumedInputs,
    .gradient = Gradient,
    .in_place = {{0, 0}},
    .traits = kElementwise,
    .examples = {"(T[37]@0.1:4)", "(T[70001]@0.1:4)", "(T[67]@special)"},
};

}  // namespace mge::op_log
