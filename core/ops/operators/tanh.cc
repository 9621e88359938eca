// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "core/ops/families/unary.h"

namespace mge::op_tanh {
namespace {

absl::Status Eval(EvalContext& ctx) {
  return EvalUnaryFloating(ctx, [](auto x) { return std::tanh(x); });
}

}  // namespace

MGE_OP(tanh) = {
    .name = "Tanh",
    .doc = "Hyperbolic tangent.",
    .inputs = {{"X", kFloating}},
    .outputs = {{"Y"}},
    .infer = SameTypeAsFirst,
    .eval = Eval,
    .upgrade = DropConsumedInputs,
    .in_place = {{0, 0}},
    .traits = kElementwise,
};

}  // namespace mge::op_tanh
