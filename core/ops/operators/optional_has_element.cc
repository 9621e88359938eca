// SPDX-License-Identifier: Apache-2.0
#include "core/ops/families/control_flow.h"

namespace mge::op_optional_has_element {
namespace {

absl::Status Infer(InferContext& ctx) {
  ctx.SetOutput(0, MakeType(DType::kBool, {}));
  if (!ctx.has_input(0)) ctx.SetConstant(0, Tensor::Scalar<bool>(false));
  return absl::OkStatus();
}

absl::Status Eval(EvalContext& ctx) {
  MGE_ASSIGN_OR_RETURN(Tensor * y, ctx.Output(0, DType::kBool, {}));
  bool has = ctx.has_input(0) && (!IsOptional(ctx.value(0).kind) || ctx.value(0).present);
  y->MutableData<bool>()[0] = has;
  return absl::OkStatus();
}

}  // namespace

MGE_OP(optional_has_element) = {.name = "OptionalHasElement",
                                .doc = "True if an optional is not empty.",
                                .inputs = {{.name = "input", .arity = Arity::kOptional, .any_kind = true}},
                                .outputs = {{"output"}},
                                .infer = Infer,
                                .eval = Eval,
                                .traits = kHostOnly,
                                .since = 15};

}  // namespace mge::op_optional_has_element
