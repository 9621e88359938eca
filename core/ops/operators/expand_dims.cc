// SPDX-License-Identifier: Apache-2.0
#include "core/ops/function_body.h"

namespace mge::op_expand_dims {
namespace {

absl::StatusOr<bool> Body(FunctionBody& f) {
  const ValueId axis = f.Add("Cast", {f.Reshape(f.input(1), {1})}, CastTo(DType::kI64));
  f.Result(0, "Unsqueeze", {f.input(0), axis});
  return true;
}

}  // namespace

MGE_OP(expand_dims) = {
    .name = "ExpandDims",
    .domain = "com.microsoft",
    .doc = "Inserts a dimension of size 1.",
    .inputs = {{"X"}, {"axis", {DType::kI32}}},
    .outputs = {{"Y"}},
    .infer = InferByBody,
    .eval = EvalByBody,
    .body = Body,
    .examples = {"(T[3,4], int32[]<1>)"},
};

}  // namespace mge::op_expand_dims
