// SPDX-License-Identifier: Apache-2.0
#include "core/ops/families/movement.h"

namespace mge::op_sequence_empty {
namespace {

absl::Status Infer(InferContext& ctx) {
  MGE_ASSIGN_OR_RETURN(DType dtype, ReadDType(ctx.attrs(), "dtype", kAnyType));
  ctx.SetOutput(0, UnrankedType(dtype), ValueKind::kSequence);
  return absl::OkStatus();
}

// Not inlined: if it is, gcc 12 reports a false warning about the inline storage of a moved empty shape.
[[gnu::noinline]] HostValue EmptySequence() {
  HostValue out;
  out.kind = ValueKind::kSequence;
  return out;
}

absl::Status Eval(EvalContext& ctx) { return ctx.SetOutput(0, EmptySequence()); }

}  // namespace

MGE_OP(sequence_empty) = {.name = "SequenceEmpty",
                          .doc = "An empty sequence for tensors of type `dtype`.",
                          .outputs = {{"output"}},
                          .attrs = {{"dtype", 1, "the element type"}},
                          .infer = Infer,
                          .eval = Eval,
                          .traits = kHostOnly,
                          .since = 11};

}  // namespace mge::op_sequence_empty
