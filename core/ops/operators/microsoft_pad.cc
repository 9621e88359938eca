// SPDX-License-Identifier: Apache-2.0
#include "core/ops/function_body.h"

namespace mge::op_microsoft_pad {
namespace {

// Pads may be a matrix of one row.
absl::StatusOr<bool> Body(FunctionBody& f) {
  f.Result(0, "Pad", {f.input(0), f.Reshape(f.input(1), {-1}), f.input(2)}, f.attrs());
  return true;
}

}  // namespace

MGE_OP(microsoft_pad) = {
    .name = "Pad",
    .domain = "com.microsoft",
    .doc = "Pads a tensor, as in ONNX.",
    .inputs = {{"data", kFloating}, {"pads", {DType::kI64}}, {"value", kFloating, Arity::kOptional}},
    .outputs = {{"output"}},
    .attrs = {{"mode", "constant", "constant, reflect or edge"}},
    .infer = InferByBody,
    .eval = EvalByBody,
    .body = Body,
    .examples = {"(T[3,4], int64[4]<0,1,2,0>)", "(T[3,4], int64[1,4]<0,1,2,0>) {mode=\"edge\"}"},
};

}  // namespace mge::op_microsoft_pad
