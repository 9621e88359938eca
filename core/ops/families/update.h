// SPDX-License-Identifier: Apache-2.0
// The operators that write to the memory of their first input, the target. If the target is an initializer, it becomes a
// state of the session: the next run reads what this run has written.
#pragma once

#include "core/ops/effects.h"
#include "core/ops/infer_checks.h"
#include "core/ops/op_helpers.h"
#include "fmt/format.h"

namespace mge {

// Checks that both inputs have one type and shape, and sets the output's to it.
inline absl::Status UpdateInfer(InferContext& ctx) {
  const TensorType &target = ctx.input(0), &value = ctx.input(1);
  if (target.dtype != value.dtype && target.dtype != DType::kUndefined && value.dtype != DType::kUndefined) {
    return ctx.Invalid(fmt::format("target is {} and value is {}; expected one element type", DTypeName(target.dtype),
                                   DTypeName(value.dtype)));
  }
  if (target.IsStatic() && value.IsStatic() && target.dims != value.dims) {
    return ctx.Invalid(fmt::format("target has the shape {} and value {}; expected one shape", ShapeText(target.dims),
                                   ShapeText(value.dims)));
  }
  ctx.SetOutput(0, target.IsStatic() ? target : value);
  return absl::OkStatus();
}

}  // namespace mge
