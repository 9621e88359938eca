// SPDX-License-Identifier: Apache-2.0
#include "core/ops/families/unary.h"

namespace mge::op_not {
namespace {

absl::Status Eval(EvalContext& ctx) {
  const Tensor& x = ctx.input(0);
  MGE_ASSIGN_OR_RETURN(Tensor * y, ctx.Output(0, DType::kBool, x.shape()));
  MapUnary<bool>(x, *y, [](bool b) { return !b; });
  return absl::OkStatus();
}

}  // namespace

MGE_OP(not ) = {
    .name = "Not",
    .doc = "Logical negation.",
    .inputs = {{"X", kBoolean}},
    .outputs = {{"Y"}},
    .infer = SameTypeAsFirst,
    .eval = Eval,
    .in_place = {{0, 0}},
    .traits = kElementwise,
};

}  // namespace mge::op_not
