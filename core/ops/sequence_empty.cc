// SPDX-License-Identifier: Apache-2.0
#include "core/ops/movement.h"

namespace mge {
namespace {

absl::Status Infer(InferContext& ctx) {
  MGE_ASSIGN_OR_RETURN(DType dtype, ReadDType(ctx.attrs(), "dtype", DType::kF32, kAnyType));
  ctx.SetOutput(0, UnrankedType(dtype), ValueKind::kSequence);
  return absl::OkStatus();
}

absl::Status Eval(EvalContext& ctx) {
  HostValue out{};  // zeroed: gcc 12 warns of uninitialised inline storage otherwise
  out.kind = ValueKind::kSequence;
  return ctx.SetOutput(0, std::move(out));
}

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
