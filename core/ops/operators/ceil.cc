// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "core/ops/families/unary.h"
#include "core/ops/gradient.h"

namespace mge::op_ceil {
namespace {

absl::Status Eval(EvalContext& ctx) {
  return EvalUnaryFloating(ctx, [](auto x) { return std::ceil(x); });
}

}  // namespace

MGE_OP(ceil) = {
    .name = "Ceil",
    .doc = "The smallest integer that is not less than x.",
    .inputs = {{"X", kFloating}},
    .outputs = {{"Y"}},
    .infer = SameTypeAsFirst,
    .eval = Eval,
    .upgrade = DropConsumedInputs,
    .gradient = ZeroGradient,
    .in_place = {{0, 0}},
    .traits = kElementwise,
};

}  // namespace mge::op_ceil
