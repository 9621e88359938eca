// SPDX-License-Identifier: Apache-2.0
#include "core/ops/families/movement.h"

namespace mge::op_size {
namespace {

absl::Status Infer(InferContext& ctx) {
  const TensorType& x = ctx.input(0);
  ctx.SetOutput(0, MakeType(DType::kI64, {}));
  if (x.has_rank && IsStatic(x.dims)) {
    MGE_ASSIGN_OR_RETURN(int64_t n, NumElements(x.dims));
    ctx.SetConstant(0, Tensor::Scalar<int64_t>(n));
  }
  return absl::OkStatus();
}

absl::Status Eval(EvalContext& ctx) {
  MGE_ASSIGN_OR_RETURN(Tensor * y, ctx.Output(0, DType::kI64, {}));
  y->MutableData<int64_t>()[0] = ctx.input(0).elements();
  return absl::OkStatus();
}

}  // namespace

MGE_OP(size) = {.name = "Size",
                .doc = "The number of elements of the input.",
                .inputs = {{"data"}},
                .outputs = {{"size"}},
                .infer = Infer,
                .eval = Eval,
                .traits = kHostOnly};

}  // namespace mge::op_size
