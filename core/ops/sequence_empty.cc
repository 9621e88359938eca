// SPDX-License-Identifier: Apache-2.0
#include "core/ops/movement.h"

namespace mge {
namespace {

absl::Status Infer(InferContext& ctx) {
  MGE_ASSIGN_OR_RETURN(DType dtype, ReadDType(ctx.attrs(), "dtype", DType::kF32, kAnyType));
  ctx.SetOutput(0, UnrankedType(dtype), ValueKind::kSequence);
  return absl::OkStatus();
}

// Not inlined: gcc 12 would warn of the inline storage of a shape that is moved while empty.
[[gnu::noinline]] HostValue EmptySequence() {
  HostValue out;
  out.kind = ValueKind::kSequence;
  return out;
}

absl::Status Eval(EvalContext& ctx) { return ctx.SetOutput(0, EmptySequence()); }

}  // namespace

MGE_OP(sequence_empty) = {.name = "SequenceEmpty",
                          .doc = "A sequence without an element; `dtype` is the type of those to come.",
                          .outputs = {{"output"}},
                          .attrs = {{"dtype", AttrType::kInt}},
                          .infer = Infer,
                          .eval = Eval,
                          .traits = kHostOnly,
                          .since = 11};

}  // namespace mge
