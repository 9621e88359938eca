// SPDX-License-Identifier: Apache-2.0
#include "core/ops/families/sigmoid.h"

#include "core/ops/families/unary.h"

namespace mge::op_sigmoid {
namespace {

absl::Status Eval(EvalContext& ctx) {
  return EvalUnaryFloating(ctx, [](auto x) { return Sigmoid(x); });
}

}  // namespace

MGE_OP(sigmoid) = {
    .name = "Sigmoid",
    .doc = "1 / (1 + exp(-x)).",
    .inputs = {{"X", kFloating}},
    .outputs = {{"Y"}},
    .infer = SameTypeAsFirst,
    .eval = Eval,
    .upgrade = DropConsumedInputs,
    .in_place = {{0, 0}},
    .traits = kElementwise,
};

}  // namespace mge::op_sigmoid
