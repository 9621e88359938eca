// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "core/ops/families/unary.h"
#include "core/ops/gradient.h"

namespace mge::op_exp {
namespace {

absl::Status Eval(EvalContext& ctx) {
  return EvalUnaryFloating(ctx, [](auto x) { return std::exp(x); });
}

absl::Status Gradient(GradientContext& g) { return g.Give(0, g.dy() * g.y()); }

}  // namespace

MGE_OP(exp) = {
    .name = "Exp",
    .doc = "e to the power of x.",
    .inputs = {{"X", kFloating}},
    .outputs = {{"Y"}},
    .infer = SameTypeAsFirst,
    .eval = Eval,
    .upgrade = DropConsumedInputs,
    .gradient = Gradient,
    .in_place = {{0, 0}},
    .traits = kElementwise,
};

}  // namespace mge::op_exp
