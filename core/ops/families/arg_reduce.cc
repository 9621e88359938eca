// SPDX-License-Identifier: Apache-2.0
#include "core/ops/families/arg_reduce.h"

namespace mge {

absl::Status ArgReduceInfer(InferContext& ctx) {
  const TensorType& x = ctx.input(0);
  if (!x.has_rank) {
    ctx.SetOutput(0, UnrankedType(DType::kI64));
    return absl::OkStatus();
  }
  MGE_ASSIGN_OR_RETURN(int64_t axis, NormalizeAxis(ctx.attrs().Int("axis"), static_cast<int64_t>(x.dims.size())));
  Shape dims = x.dims;
  if (ctx.attrs().Int("keepdims") != 0) {
    dims[axis] = 1;
  } else {
    dims.erase(dims.begin() + axis);
  }
  ctx.SetOutput(0, MakeType(DType::kI64, std::move(dims)));
  return absl::OkStatus();
}

AxisSplit SplitAtAxis(std::span<const int64_t> shape, int64_t axis) {
  AxisSplit split;
  for (int64_t d = 0; d < static_cast<int64_t>(shape.size()); ++d) {
    (d < axis ? split.outer : d == axis ? split.size : split.inner) *= shape[d];
  }
  return split;
}

}  // namespace mge
