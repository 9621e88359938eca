// SPDX-License-Identifier: Apache-2.0
#include "core/ops/function_body.h"

namespace mge::op_microsoft_quantize_linear {
namespace {

absl::StatusOr<bool> Body(FunctionBody& f) {
  f.Result(0, "QuantizeLinear", {f.input(0), f.input(1), f.input(2)}, f.Only({"axis"}));
  return true;
}

}  // namespace

MGE_OP(microsoft_quantize_linear) = {
    .name = "QuantizeLinear",
    .domain = "com.microsoft",
    .doc = "x / scale + zero point, rounded to integers, as in ONNX.",
    .inputs = {{"x", kFloating},
               {"y_scale", kFloating},
               {"y_zero_point", {DType::kU8, DType::kI8, DType::kU16, DType::kI16}, Arity::kOptional}},
    .outputs = {{"y"}},
    .attrs = {AxisOf({"axis", 1, "the axis"})},
    .infer = InferByBody,
    .eval = EvalByBody,
    .body = Body,
    .examples = {"(T[3,5], T[]<0.05>, uint16[]<3>)", "(T[3,2], T[2]<0.05,0.1>, int8[2]<3,4>) {axis=1}"},
};

}  // namespace mge::op_microsoft_quantize_linear
