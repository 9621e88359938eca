// SPDX-License-Identifier: Apache-2.0
#include "core/ops/families/fused_quantized.h"

namespace mge::op_dynamic_quantize_mat_mul {
namespace {

enum Input { kA, kB, kScale, kZero, kBias };

absl::StatusOr<bool> Body(FunctionBody& f) {
  const std::vector<ValueId> a = f.Add("DynamicQuantizeLinear", {f.input(kA)}, 3, {});
  ScaledProduct(f, a[0], a[2], kB, kZero, f.Add("Mul", {a[1], f.input(kScale)}), kBias);
  return true;
}

}  // namespace

MGE_OP(dynamic_quantize_mat_mul) = {
    .name = "DynamicQuantizeMatMul",
    .domain = "com.microsoft",
    .doc = "The product of A, quantized to uint8 by its range, with quantized weights.",
    .inputs = {{"A", kFloat32},
               {"B", kQuantized8},
               {"b_scale", kFloat32},
               {"b_zero_point", kQuantized8, Arity::kOptional},
               {"bias", kFloat32, Arity::kOptional}},
    .outputs = {{"Y"}},
    .infer = InferByBody,
    .eval = EvalByBody,
    .body = Body,
    .examples = {"(T[2,3,5], int8[5,2], float32[]<0.1>, int8[]<1>, T[2])", "(T[3,5], uint8[5,2], float32[2]<0.1,0.2>)"},
};

}  // namespace mge::op_dynamic_quantize_mat_mul
