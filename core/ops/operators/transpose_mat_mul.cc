// SPDX-License-Identifier: Apache-2.0
#include "core/ops/families/fused_mat_mul.h"

namespace mge::op_transpose_mat_mul {
namespace {

absl::StatusOr<bool> Body(FunctionBody& f) {
  f.AddMicrosoftTo({f.output(0)}, "FusedMatMul", {f.input(0), f.input(1)}, f.attrs());
  return true;
}

}  // namespace

MGE_OP(transpose_mat_mul) = {
    .name = "TransposeMatMul",
    .domain = "com.microsoft",
    .doc = "The former name of FusedMatMul.",
    .inputs = kFusedMatMulInputs,
    .outputs = {{"Y"}},
    .attrs = kFusedMatMulAttrs,
    .infer = InferByBody,
    .eval = EvalByBody,
    .body = Body,
    .examples = {"(T[5,3], T[5,7]) {transA=1}"},
};

}  // namespace mge::op_transpose_mat_mul
