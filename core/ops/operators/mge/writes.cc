// SPDX-License-Identifier: Apache-2.0
// Operators that write to the memory of their first input.
#include "core/ops/effects.h"
#include "core/ops/families/binary.h"
#include "core/ops/infer_checks.h"
#include "core/ops/op_helpers.h"
#include "fmt/format.h"

namespace mge::op_writes {
namespace {

// Checks that both inputs have one type and shape, and sets the output's to it.
absl::Status UpdateInfer(InferContext& ctx) {
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

absl::Status EvalAccumulate(EvalContext& ctx) {
  return EvalBinary(ctx, kForNumeric, [](auto x, auto y) { return Wrapping(x, y, [](auto a, auto b) { return a + b; }); });
}

constexpr OpDef kRows[] = {
    {.name = "Accumulate",
     .domain = "mge",
     .doc = "Adds value to target in the memory of target, and returns the sum. Integers wrap around. A target that is an "
            "initializer keeps it for later runs.",
     .inputs = {{"target", kNumeric}, {"value", kNumeric}},
     .outputs = {{"Y"}},
     .infer = UpdateInfer,
     .eval = EvalAccumulate,
     .in_place = {{0, 0}},
     .traits = kAccumulates},
    {.name = "Assign",
     .domain = "mge",
     .doc = "Writes value to the memory of target, and returns it. A target that is an initializer keeps it for later runs.",
     .inputs = {{"target", kFixedSize}, {"value", kFixedSize}},
     .outputs = {{"Y"}},
     .infer = UpdateInfer,
     .eval = [](EvalContext& ctx) { return ctx.SetOutput(0, ctx.value(1)); },
     .traits = kAssigns},
};

}  // namespace

MGE_OPS(writes) = kRows;

}  // namespace mge::op_writes
