// SPDX-License-Identifier: Apache-2.0
#include "core/ops/function_body.h"

namespace mge::op_microsoft_dequantize_linear {
namespace {

absl::StatusOr<bool> Body(FunctionBody& f) {
  f.Result(0, "DequantizeLinear", {f.input(0), f.input(1), f.input(2)}, f.Only({"axis"}));
  return true;
}

}  // namespace

MGE_OP(microsoft_dequantize_linear) = {
    .name = "DequantizeLinear",
    .domain = "com.microsoft",
    .doc = "(x - zero point) * scale, as in ONNX.",
    .inputs = {{"x", {DType::kU8, DType::kI8, DType::kU16, DType::kI16, DType::kI32}},
               {"x_scale", kFloating},
               {"x_zero_point", {DType::kU8, DType::kI8, DType::kU16, DType::kI16, DType::kI32}, Arity::kOptional}},
    .outputs = {{"y"}},
    .attrs = {AxisOf({"axis", 1, "the axis"})},
    .infer = InferByBody,
    .eval = EvalByBody,
    .body = Body,
    .examples = {"(T[3,5], float32[]<0.05>, T[]<3>)", "(T[3,2], float32[2]<0.05,0.1>, T[2]<3,4>) {axis=1}"},
};

}  // namespace mge::op_microsoft_dequantize_linear
