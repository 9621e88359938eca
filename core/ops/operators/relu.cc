// SPDX-License-Identifier: Apache-2.0
#include "core/ops/families/unary.h"

namespace mge::op_relu {
namespace {

absl::Status Eval(EvalContext& ctx) {
  return EvalUnaryNumeric(ctx, [](auto x) { return x < 0 ? decltype(x)(0) : x; });
}

}  // namespace

MGE_OP(relu) = {.name = "Relu",
                .doc = "max(x, 0).",
                .inputs = {{"X", kNumeric}},
                .outputs = {{"Y"}},
                .infer = SameTypeAsFirst,
                .eval = Eval,
                .upgrade = DropConsumedInputs,
                .in_place = {{0, 0}},
                .traits = kElementwise};

}  // namespace mge::op_relu
