// SPDX-License-Identifier: Apache-2.0
#include "core/ops/families/movement.h"

namespace mge::op_sequence_at {
namespace {

absl::Status Infer(InferContext& ctx) {
  ctx.SetOutput(0, ctx.input(0));
  return absl::OkStatus();
}

absl::Status Eval(EvalContext& ctx) {
  const std::vector<Tensor>& sequence = ctx.value(0).sequence;
  MGE_ASSIGN_OR_RETURN(int64_t at, ScalarInt("position", ctx.input(1)));
  MGE_RETURN_IF_ERROR(CheckIndex(ctx, "position", sequence.size(), &at));
  return ctx.SetOutput(0, TensorValue(sequence[at]));
}

}  // namespace

MGE_OP(sequence_at) = {.name = "SequenceAt",
                       .doc = "The tensor at a position of a sequence. Negative positions count from the end.",
                       .inputs = {{.name = "input_sequence", .kind = ValueKind::kSequence}, {"position", kIndex}},
                       .outputs = {{"tensor"}},
                       .infer = Infer,
                       .eval = Eval,
                       .traits = kHostOnly,
                       .since = 11};

}  // namespace mge::op_sequence_at
