// SPDX-License-Identifier: Apache-2.0
#include "core/ops/families/control_flow.h"

namespace mge::op_optional_get_element {
namespace {

ValueKind Content(ValueKind kind) { return IsSequence(kind) ? ValueKind::kSequence : ValueKind::kTensor; }

absl::Status Infer(InferContext& ctx) {
  ctx.SetOutput(0, ctx.input(0), Content(ctx.input_kind(0)));
  return absl::OkStatus();
}

absl::Status Eval(EvalContext& ctx) {
  MGE_ASSIGN_OR_RETURN(HostValue content, AsKind(ctx.value(0), Content(ctx.value(0).kind)));
  return ctx.SetOutput(0, std::move(content));
}

}  // namespace

MGE_OP(optional_get_element) = {.name = "OptionalGetElement",
                                .doc = "The content of an optional. Other inputs are returned unchanged.",
                                .inputs = {{.name = "input", .any_kind = true}},
                                .outputs = {{"output"}},
                                .infer = Infer,
                                .eval = Eval,
                                .traits = kHostOnly,
                                .since = 15};

}  // namespace mge::op_optional_get_element
