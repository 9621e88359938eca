// SPDX-License-Identifier: Apache-2.0
// Products and convolutions of com.microsoft with quantized operands.
#include "core/ops/families/channels_last.h"
#include "core/ops/families/conv_geometry.h"
#include "core/ops/families/fused_quantized.h"
#include "core/ops/function_body.h"

namespace mge::op_quantized_products {
namespace {

absl::StatusOr<bool> DynamicQuantizeMatMulBody(FunctionBody& f) {
  enum { kA, kB, kScale, kZero, kBias };
  const std::vector<ValueId> a = f.Add("DynamicQuantizeLinear", {f.input(kA)}, 3, {});
  ScaledProduct(f, a[0], a[2], kB, kZero, f.Add("Mul", {a[1], f.input(kScale)}), kBias);
  return true;
}

absl::StatusOr<bool> MatMulIntegerToFloatBody(FunctionBody& f) {
  enum { kA, kB, kAScale, kBScale, kAZero, kBZero, kBias };
  ScaledProduct(f, f.input(kA), f.input(kAZero), kB, kBZero, f.Add("Mul", {f.input(kAScale), f.input(kBScale)}), kBias);
  return true;
}

// C has the scale alpha * a_scale * b_scale. Scales of B may be one for each column.
absl::StatusOr<bool> QGemmBody(FunctionBody& f) {
  enum { kA, kAScale, kAZero, kB, kBScale, kBZero, kC, kYScale, kYZero };
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

absl::StatusOr<bool> QLinearConvBody(FunctionBody& f) {
  enum { kX, kXScale, kXZero, kW, kWScale, kWZero, kYScale, kYZero, kBias };
  if (!f.has_rank(kX)) return false;
  if (f.rank(kX) < 3) return f.Invalid("x must have at least 3 dimensions");
  const bool last = f.attrs().Int("channels_last") != 0;
  std::vector<ValueId> inputs;
  for (int i = 0; i < f.input_count(); ++i) inputs.push_back(f.input(i));
  if (last) inputs[kX] = ChannelsSecond(f, inputs[kX], f.rank(kX));
  const Attributes attrs = ConvAttributesOf(f.attrs());
  if (last) {
    f.Result(0, "Transpose", {f.Add("QLinearConv", std::move(inputs), attrs)},
             OneAttribute("perm", ChannelsLast(f.rank(kX))));
  } else {
    f.Result(0, "QLinearConv", std::move(inputs), attrs);
  }
  return true;
}

constexpr OpDef kRows[] = {
    MicrosoftFunction({.name = "DynamicQuantizeMatMul",
                       .doc = "The product of A, quantized to uint8 by its range, with quantized weights.",
                       .inputs = {{"A", kFloat32},
                                  {"B", kQuantized8},
                                  {"b_scale", kFloat32},
                                  {"b_zero_point", kQuantized8, Arity::kOptional},
                                  {"bias", kFloat32, Arity::kOptional}},
                       .body = DynamicQuantizeMatMulBody,
                       .examples = {"(T[2,3,5], int8[5,2], float32[]<0.1>, int8[]<1>, T[2])",
                                    "(T[3,5], uint8[5,2], float32[2]<0.1,0.2>)"}}),
    MicrosoftFunction({.name = "MatMulIntegerToFloat",
                       .doc = "The product of quantized tensors as floats.",
                       .inputs = {{"A", kQuantized8},
                                  {"B", kQuantized8},
                                  {"a_scale", kFloat32},
                                  {"b_scale", kFloat32},
                                  {"a_zero_point", kQuantized8, Arity::kOptional},
                                  {"b_zero_point", kQuantized8, Arity::kOptional},
                                  {"bias", kFloat32, Arity::kOptional}},
                       .body = MatMulIntegerToFloatBody,
                       .examples = {"(T[2,3,5], int8[5,2], float32[]<0.05>, float32[]<0.1>, T[]<3>, int8[]<1>, float32[2])",
                                    "(T[3,5], int8[5,2], float32[]<0.05>, float32[2]<0.1,0.2>)"}}),
    MicrosoftFunction(
        {.name = "QGemm",
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
         .attrs = {{"alpha", 1.0f, "the factor"},
                   {"transA", 0, "not 0: A is transposed"},
                   {"transB", 0, "not 0: B is transposed"}},
         .body = QGemmBody,
         .examples = {"(T[3,5], float32[]<0.05>, T[]<3>, int8[5,2], float32[2]<0.1,0.2>, int8[2]<0,1>, int32[2]<7,-9>, "
                      "float32[]<0.2>, T[]<1>)",
                      "(T[3,5], float32[]<0.05>, T[]<3>, int8[2,5], float32[]<0.1>, int8[]<0>) {transB=1, alpha=0.5}"}}),
    MicrosoftFunction(
        {.name = "QLinearConv",
         .doc = "QLinearConv, whose input and output may have the channels last.",
         .inputs = {{"x", kQuantized8},
                    {"x_scale", kFloat32},
                    {"x_zero_point", kQuantized8},
                    {"w", kQuantized8},
                    {"w_scale", kFloat32},
                    {"w_zero_point", kQuantized8},
                    {"y_scale", kFloat32},
                    {"y_zero_point", kQuantized8},
                    {"B", {DType::kI32}, Arity::kOptional}},
         .outputs = {{"y"}},
         .attrs = WithConvAttrs({{"channels_last", 0, "not 0: the channels are the last axis"}}),
         .normalize = NormalizeAnyWindow<3>,
         .body = QLinearConvBody,
         .examples =
             {"(T[1,5,5,2], float32[]<0.05>, T[]<3>, int8[3,2,3,3], float32[]<0.1>, int8[]<0>, float32[]<0.2>, T[]<1>) "
              "{channels_last=1}"}}),
};

}  // namespace

MGE_OPS(quantized_products) = kRows;

}  // namespace mge::op_quantized_products
