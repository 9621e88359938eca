// SPDX-License-Identifier: Apache-2.0
#include "core/ops/families/movement.h"

namespace mge::op_sequence_erase {
namespace {

absl::Status Infer(InferContext& ctx) {
  ctx.SetOutput(0, ctx.input(0), ValueKind::kSequence);
  return absl::OkStatus();
}

absl::Status Eval(EvalContext& ctx) {
  HostValue out = ctx.value(0);
  int64_t at = -1;
  if (ctx.has_input(1)) {
    MGE_ASSIGN_OR_RETURN(at, ScalarInt("position", ctx.input(1)));
  }
  MGE_RETURN_IF_ERROR(CheckIndex(ctx, "position", out.sequence.size(), &at));
  out.sequence.erase(out.sequence.begin() + at);
  return ctx.SetOutput(0, std::move(out));
}

}  // namespace

MGE_OP(sequence_erase) = {
    .name = "SequenceErase",
    .doc = "A sequence without the tensor at a position (default: the last one).",
    .inputs = {{.name = "input_sequence", .kind = ValueKind::kSequence}, {"position", kIndex, Arity::kOptional}},
    .outputs = {{"output_sequence"}},
    .infer = Infer,
    .eval = Eval,
    .traits = kHostOnly,
    .since = 11};

}  // namespace mge::op_sequence_erase
