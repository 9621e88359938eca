// SPDX-License-Identifier: Apache-2.0
// Parts of the operators of com.microsoft that compute with quantized tensors. They become operators between DequantizeLinear
// and QuantizeLinear, which rewrites replace by products and convolutions of integers.
#pragma once

#include <string>
#include <vector>

#include "core/ops/families/channels_last.h"
#include "core/ops/families/quantization.h"

namespace mge {

inline constexpr TypeSet kFloat32 = {DType::kF32};

// The inputs of QuantizedUnary and QuantizedBinary.
inline constexpr InputList kQuantizedUnaryInputs = {{"X", kQuantized8},
                                                    {"X_scale", kFloat32},
                                                    {"X_zero_point", kQuantized8, Arity::kOptional},
                                                    {"Y_scale", kFloat32},
                                                    {"Y_zero_point", kQuantized8, Arity::kOptional}};
inline constexpr InputList kQuantizedBinaryInputs = {{"A", kQuantized8},
                                                     {"A_scale", kFloat32},
                                                     {"A_zero_point", kQuantized8, Arity::kOptional},
                                                     {"B", kQuantized8},
                                                     {"B_scale", kFloat32},
                                                     {"B_zero_point", kQuantized8, Arity::kOptional},
                                                     {"C_scale", kFloat32},
                                                     {"C_zero_point", kQuantized8, Arity::kOptional}};

// Returns input `x` as floats. `scale` and `zero` are input numbers; input `zero` may be absent. `attrs` are those of
// DequantizeLinear.
inline ValueId Dequantized(FunctionBody& f, int x, int scale, int zero, Attributes attrs = {}) {
  return f.Add("DequantizeLinear", {f.input(x), f.input(scale), f.input(zero)}, std::move(attrs));
}

// Computes output 0 as the integers of `x`. Without input `zero`, they have the element type `type`.
inline void Quantized(FunctionBody& f, ValueId x, int scale, int zero, DType type) {
  const ValueId point = f.has_input(zero) ? f.input(zero) : f.Number(type, 0);
  f.Result(0, "QuantizeLinear", {x, f.input(scale), point});
}

// Computes output 0 from input 0 (scale 1, zero point 2) by an operator of floats. The result has scale 3 and zero point 4.
inline absl::StatusOr<bool> QuantizedUnary(FunctionBody& f, std::string op, Attributes attrs = {}, int version = 0) {
  const ValueId y = f.AddVersion(version, std::move(op), {Dequantized(f, 0, 1, 2)}, std::move(attrs));
  Quantized(f, y, 3, 4, f.dtype(0));
  return true;
}

// Computes output 0 from the inputs 0 (1, 2) and 3 (4, 5) by an operator of floats. The result has scale 6 and zero point 7.
inline absl::StatusOr<bool> QuantizedBinary(FunctionBody& f, std::string op) {
  const ValueId y = f.Add(std::move(op), {Dequantized(f, 0, 1, 2), Dequantized(f, 3, 4, 5)});
  Quantized(f, y, 6, 7, f.dtype(0));
  return true;
}

// Does the same as QuantizedUnary for an operator that wants the channels in dimension 1. If the attribute channels_last is
// set, the input and output have them last.
inline absl::StatusOr<bool> QuantizedPool(FunctionBody& f, std::string op, Attributes attrs) {
  if (f.attrs().Int("channels_last") == 0) return QuantizedUnary(f, std::move(op), std::move(attrs));
  if (!f.has_rank(0)) return false;
  if (f.rank(0) < 2) return f.Invalid("X must have at least 2 dimensions");
  const ValueId x = ChannelsSecond(f, Dequantized(f, 0, 1, 2), f.rank(0));
  const ValueId y = f.Add(std::move(op), {x}, std::move(attrs));
  Quantized(f, f.Transpose(y, ChannelsLast(f.rank(0))), 3, 4, f.dtype(0));
  return true;
}

// Computes output 0 as the product of the integers `a` and input `b`, times `scale`, plus input `bias`. Zero points are values
// or inputs, which may be absent.
inline void ScaledProduct(FunctionBody& f, ValueId a, ValueId a_zero, int b, int b_zero, ValueId scale, int bias) {
  const ValueId sums = f.Add("MatMulInteger", {a, f.input(b), a_zero, f.input(b_zero)});
  const ValueId floats = f.Add("Cast", {sums}, CastTo(DType::kF32));
  if (!f.has_input(bias)) {
    f.Result(0, "Mul", {floats, scale});
  } else {
    f.Result(0, "Add", {f.Add("Mul", {floats, scale}), f.input(bias)});
  }
}

}  // namespace mge
