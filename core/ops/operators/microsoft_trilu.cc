// SPDX-License-Identifier: Apache-2.0
#include "core/ops/function_body.h"

namespace mge::op_microsoft_trilu {
namespace {

absl::StatusOr<bool> Body(FunctionBody& f) {
  f.Result(0, "Trilu", {f.input(0), f.input(1)}, f.attrs());
  return true;
}

}  // namespace

MGE_OP(microsoft_trilu) = {
    .name = "Trilu",
    .domain = "com.microsoft",
    .doc = "The upper or lower triangle of matrices, as in ONNX.",
    .inputs = {{"X"}, {"k", {DType::kI64}, Arity::kOptional}},
    .outputs = {{"Y"}},
    .attrs = {{"upper", 1, "not 0: keeps the upper triangle"}},
    .infer = InferByBody,
    .eval = EvalByBody,
    .body = Body,
    .examples = {"(T[2,3,4], int64[]<1>)", "(T[3,4]) {upper=0}"},
};

}  // namespace mge::op_microsoft_trilu
