// SPDX-License-Identifier: Apache-2.0
#include "core/ops/families/movement.h"

namespace mge::op_sequence_construct {
namespace {

absl::Status Infer(InferContext& ctx) {
  if (!ctx.has_input(0)) return ctx.Invalid("the node has no input; use SequenceEmpty for an empty sequence");
  TensorType type = ctx.input(0);
  for (int i = 1; i < ctx.input_count(); ++i) {
    MGE_RETURN_IF_ERROR(SameElementTypes(ctx, {0, i}));
    type = Common(type, ctx.input(i));
  }
  ctx.SetOutput(0, std::move(type), ValueKind::kSequence);
  return absl::OkStatus();
}

absl::Status Eval(EvalContext& ctx) {
  HostValue out;
  out.kind = ValueKind::kSequence;
  for (int i = 0; i < ctx.input_count(); ++i) out.sequence.push_back(ctx.input(i));
  return ctx.SetOutput(0, std::move(out));
}

}  // namespace

MGE_OP(sequence_construct) = {.name = "SequenceConstruct",
                              .doc = "A sequence of the given tensors.",
                              .inputs = {{"inputs", kAnyType, Arity::kVariadic}},
                              .outputs = {{"output_sequence"}},
                              .infer = Infer,
                              .eval = Eval,
                              .traits = kHostOnly,
                              .since = 11};

}  // namespace mge::op_sequence_construct
