// SPDX-License-Identifier: Apache-2.0
#include "core/ops/families/fused_quantized.h"

namespace mge::op_q_linear_where {
namespace {

absl::StatusOr<bool> Body(FunctionBody& f) {
  Quantized(f, f.Add("Where", {f.input(0), Dequantized(f, 1, 2, 3), Dequantized(f, 4, 5, 6)}), 7, 8, f.dtype(1));
  return true;
}

}  // namespace

MGE_OP(q_linear_where) = {
    .name = "QLinearWhere",
    .domain = "com.microsoft",
    .doc = "X where the condition is true, else Y, of quantized tensors.",
    .inputs = {{"condition", {DType::kBool}},
               {"X", kQuantized8},
               {"x_scale", kFloat32},
               {"x_zero_point", kQuantized8},
               {"Y", kQuantized8},
               {"y_scale", kFloat32},
               {"y_zero_point", kQuantized8},
               {"z_scale", kFloat32},
               {"z_zero_point", kQuantized8}},
    .outputs = {{"Z"}},
    .infer = InferByBody,
    .eval = EvalByBody,
    .body = Body,
    .examples = {"(bool[5]<true,false,true,true,false>, T[3,5], float32[]<0.05>, T[]<3>, T[5], float32[]<0.1>, T[]<7>, "
                 "float32[]<0.2>, T[]<1>)"},
};

}  // namespace mge::op_q_linear_where
