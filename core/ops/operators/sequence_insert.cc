// SPDX-License-Identifier: Apache-2.0
#include "core/ops/families/movement.h"

namespace mge::op_sequence_insert {
namespace {

absl::Status Infer(InferContext& ctx) {
  MGE_RETURN_IF_ERROR(SameElementTypes(ctx, {0, 1}));
  ctx.SetOutput(0, Common(ctx.input(0), ctx.input(1)), ValueKind::kSequence);
  return absl::OkStatus();
}

absl::Status Eval(EvalContext& ctx) {
  HostValue out = ctx.value(0);
  const int64_t size = static_cast<int64_t>(out.sequence.size());
  int64_t at = size;
  if (ctx.has_input(2)) {
    MGE_ASSIGN_OR_RETURN(at, ScalarInt("position", ctx.input(2)));
    if (at < -size || at > size) {
      return Fail(errors::kIndexOutOfRange, fmt::format("position {} is outside of [{}, {}]", at, -size, size),
                  {.where = NodePlace(ctx.node())});
    }
    if (at < 0) at += size;
  }
  if (size > 0 && out.sequence[0].dtype() != ctx.input(1).dtype()) {
    return ctx.Invalid(fmt::format("a {} tensor cannot be inserted into a sequence of {}", DTypeName(ctx.input(1).dtype()),
                                   DTypeName(out.sequence[0].dtype())));
  }
  out.sequence.insert(out.sequence.begin() + at, ctx.input(1));
  return ctx.SetOutput(0, std::move(out));
}

}  // namespace

MGE_OP(sequence_insert) = {
    .name = "SequenceInsert",
    .doc = "A sequence with a tensor inserted before a position (default: at the end).",
    .inputs = {{.name = "input_sequence", .kind = ValueKind::kSequence}, {"tensor"}, {"position", kIndex, Arity::kOptional}},
    .outputs = {{"output_sequence"}},
    .infer = Infer,
    .eval = Eval,
    .traits = kHostOnly,
    .since = 11};

}  // namespace mge::op_sequence_insert
