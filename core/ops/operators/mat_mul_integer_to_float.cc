// SPDX-License-Identifier: Apache-2.0
#include "core/ops/families/fused_quantized.h"

namespace mge::op_mat_mul_integer_to_float {
namespace {

enum Input { kA, kB, kAScale, kBScale, kAZero, kBZero, kBias };

absl::StatusOr<bool> Body(FunctionBody& f) {
  ScaledProduct(f, f.input(kA), f.input(kAZero), kB, kBZero, f.Add("Mul", {f.input(kAScale), f.input(kBScale)}), kBias);
  return true;
}

}  // namespace

MGE_OP(mat_mul_integer_to_float) = {
    .name = "MatMulIntegerToFloat",
    .domain = "com.microsoft",
    .doc = "The product of quantized tensors as floats.",
    .inputs = {{"A", kQuantized8},
               {"B", kQuantized8},
               {"a_scale", kFloat32},
               {"b_scale", kFloat32},
               {"a_zero_point", kQuantized8, Arity::kOptional},
               {"b_zero_point", kQuantized8, Arity::kOptional},
               {"bias", kFloat32, Arity::kOptional}},
    .outputs = {{"Y"}},
    .infer = InferByBody,
    .eval = EvalByBody,
    .body = Body,
    .examples = {"(T[2,3,5], int8[5,2], float32[]<0.05>, float32[]<0.1>, T[]<3>, int8[]<1>, float32[2])",
                 "(T[3,5], int8[5,2], float32[]<0.05>, float32[2]<0.1,0.2>)"},
};

}  // namespace mge::op_mat_mul_integer_to_float
