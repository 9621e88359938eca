// SPDX-License-Identifier: Apache-2.0
// The RMS normalizations of ONNX Runtime, which output the factor of each row, too.
#pragma once

#include "core/ops/function_body.h"

namespace mge {

// Computes output 0 as the RMSNormalization of `x` from `axis` on, with input `scale`. Computes output `factor` as the inverse
// root of the mean square, if it is present; `axis` must then be that of the last dimension. `type` is the type of `x`.
inline absl::Status AddRmsNorm(FunctionBody& f, ValueId x, DType type, int scale, float epsilon, int64_t axis, int factor) {
  Attributes attrs = OneAttribute("epsilon", epsilon);
  attrs.Set("axis", axis);
  f.Result(0, "RMSNormalization", {x, f.input(scale)}, std::move(attrs));
  if (f.output(factor) == kNone) return absl::OkStatus();
  if (axis != -1) return f.Unsupported("the output inv_std_var of several dimensions");
  const ValueId wide = f.Cast(x, type, DType::kF32);
  const ValueId mean = f.Add("ReduceMean", {f.Add("Mul", {wide, wide}), f.Integers({-1})}, IntAttribute("keepdims", 1));
  f.Result(factor, "Reciprocal", {f.Add("Sqrt", {f.Add("Add", {mean, f.Number(DType::kF32, epsilon)})})});
  return absl::OkStatus();
}

}  // namespace mge
