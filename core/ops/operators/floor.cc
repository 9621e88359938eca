// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "core/ops/families/unary.h"
#include "core/ops/gradient.h"

namespace mge::op_floor {
namespace {

absl::Status Eval(EvalContext& ctx) {
  return EvalUnaryFloating(ctx, [](auto x) { return std::floor(x); });
}

}  // namespace

MGE_OP(floor) = {
    .name = "Floor",
    .doc = "The largest integer that is not greater than x.",
    .inputs = {{"X", kFloating}},
    .outputs = {{"Y"}},
    .infer = SameTypeAsFirst,
    .eval = Eval,
    .upgrade = DropConsumedInputs,
    .gradient = ZeroGradient,
    .in_place = {{0, 0}},
    .traits = kElementwise,
};

}  // namespace mge::op_floor
