// SPDX-License-Identifier: Apache-2.0
#include "core/ops/families/movement.h"

namespace mge::op_sequence_length {
namespace {

absl::Status Infer(InferContext& ctx) {
  ctx.SetOutput(0, MakeType(DType::kI64, {}));
  return absl::OkStatus();
}

absl::Status Eval(EvalContext& ctx) {
  MGE_ASSIGN_OR_RETURN(Tensor * y, ctx.Output(0, DType::kI64, {}));
  y->MutableData<int64_t>()[0] = static_cast<int64_t>(ctx.value(0).sequence.size());
  return absl::OkStatus();
}

}  // namespace

MGE_OP(sequence_length) = {.name = "SequenceLength",
                           .doc = "The number of tensors in a sequence.",
                           .inputs = {{.name = "input_sequence", .kind = ValueKind::kSequence}},
                           .outputs = {{"length"}},
                           .infer = Infer,
                           .eval = Eval,
                           .traits = kHostOnly,
                           .since = 11};

}  // namespace mge::op_sequence_length
