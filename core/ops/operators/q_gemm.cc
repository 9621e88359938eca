// SPDX-License-Identifier: Apache-2.0
#include "core/ops/families/fused_quantized.h"

namespace mge::op_q_gemm {
namespace {

enum Input { kA, kAScale, kAZero, kB, kBScale, kBZero, kC, kYScale, kYZero };

// C has the scale alpha * a_scale * b_scale. Scales of B may be one for each column.
absl::StatusOr<bool> Body(FunctionBody& f) {
  const ValueId a = Dequantized(f, kA, kAScale, kAZero);
  const ValueId b = Dequantized(f, kB, kBScale, kBZero, IntAttribute("axis", f.attrs().Int("transB") != 0 ? 0 : 1));
  std::vector<ValueId> inputs = {a, b};
  if (f.has_input(kC)) {
    ValueId scale = f.Add("Mul", {f.input(kAScale), f.input(kBScale)});
    const float alpha = f.attrs().Float("alpha");
    if (alpha != 1.0f) scale = f.Add("Mul", {scale, f.Number(DType::kF32, alpha)});
    inputs.push_back(f.Add("Mul", {f.Add("Cast", {f.input(kC)}, CastTo(DType::kF32)), scale}));
  }
  if (!f.has_input(kYScale)) {
    f.Result(0, "Gemm", std::move(inputs), f.Only({"alpha", "transA", "transB"}));
  } else {
    const ValueId y = f.Add("Gemm", std::move(inputs), f.Only({"alpha", "transA", "transB"}));
    Quantized(f, y, kYScale, kYZero, f.dtype(kA));
  }
  return true;
}

}  // namespace

MGE_OP(q_gemm) = {
    .name = "QGemm",
    .domain = "com.microsoft",
    .doc = "Gemm of quantized matrices. Without y_scale, the result is float.",
    .inputs = {{"A", kQuantized8},
               {"a_scale", kFloat32},
               {"a_zero_point", kQuantized8},
               {"B", kQuantized8},
               {"b_scale", kFloat32},
               {"b_zero_point", kQuantized8},
               {"C", {DType::kI32}, Arity::kOptional},
               {"y_scale", kFloat32, Arity::kOptional},
               {"y_zero_point", kQuantized8, Arity::kOptional}},
    .outputs = {{"Y"}},
    .attrs = {{"alpha", 1.0f, "the factor"},
              {"transA", 0, "not 0: A is transposed"},
              {"transB", 0, "not 0: B is transposed"}},
    .infer = InferByBody,
    .eval = EvalByBody,
    .body = Body,
    .examples = {"(T[3,5], float32[]<0.05>, T[]<3>, int8[5,2], float32[2]<0.1,0.2>, int8[2]<0,1>, int32[2]<7,-9>, "
                 "float32[]<0.2>, T[]<1>)",
                 "(T[3,5], float32[]<0.05>, T[]<3>, int8[2,5], float32[]<0.1>, int8[]<0>) {transB=1, alpha=0.5}"},
};

}  // namespace mge::op_q_gemm
