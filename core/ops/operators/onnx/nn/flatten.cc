// SPDX-License-Identifier: Apache-2.0
#include "core/ops/families/movement.h"
#include "core/ops/gradient.h"
#include "core/ops/op_helpers.h"

namespace mge::op_flatten {
namespace {

absl::StatusOr<Shape> Flattened(std::span<const int64_t> in, int64_t axis) {
  int64_t rank = static_cast<int64_t>(in.size());
  if (axis < -rank || axis > rank) {
    return BadNode(fmt::format("axis {} is outside of [{}, {}]", axis, -rank, rank));
  }
  if (axis < 0) axis += rank;
  Shape out = {1, 1};
  for (int64_t i = 0; i < rank; ++i) {
    int64_t& d = out[i < axis ? 0 : 1];
    if (in[i] == 0 || d == 0) {
      d = 0;
    } else if (in[i] == kUnknownDim || d == kUnknownDim) {
      d = kUnknownDim;
    } else if (!CheckedMul(d, in[i], &d)) {
      return BadNode(fmt::format("size overflow: {}", ShapeText(in)));
    }
  }
  return out;
}

absl::Status Infer(InferContext& ctx) {
  const TensorType& x = ctx.input(0);
  if (!x.has_rank) {
    ctx.SetOutput(0, RankedType(x.dtype, 2));
    return absl::OkStatus();
  }
  MGE_ASSIGN_OR_RETURN(Shape out, Flattened(x.dims, ctx.attrs().Int("axis")));
  ctx.SetOutput(0, MakeType(x.dtype, std::move(out)));
  return absl::OkStatus();
}

absl::Status Eval(EvalContext& ctx) {
  const Tensor& x = ctx.input(0);
  MGE_ASSIGN_OR_RETURN(Shape out, Flattened(x.shape(), ctx.attrs().Int("axis")));
  return ctx.SetOutput(0, TensorValue(x.Reshaped(std::move(out))));
}

}  // namespace

MGE_OP(flatten) = {.name = "Flatten",
                   .doc = "Reshapes the input to a matrix. Dimensions before `axis` form the rows, the others the columns.",
                   .inputs = {{"input"}},
                   .outputs = {{"output"}},
                   .attrs = {AxisOf({"axis", 1, "the first axis of the second dimension"})},
                   .infer = Infer,
                   .eval = Eval,
                   .gradient = SameElementsGradient,
                   .in_place = {{0, 0}},
                   .traits = kView,
                   .examples = {"(T[2,3,5])"}};

}  // namespace mge::op_flatten
