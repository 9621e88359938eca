// SPDX-License-Identifier: Apache-2.0
// Helpers of Softmax, LogSoftmax and Hardmax: the elements that are normalised together.
#pragma once

#include "core/ops/families/arg_reduce.h"
#include "core/ops/op_helpers.h"

namespace mge {

inline constexpr AttrList kSoftmaxAttrs = {AxisOf({"axis", -1, "the axis"}), {"_flatten", AttrType::kInt}};

// Checks the axis and sets output 0 to input 0's type.
absl::Status SoftmaxInfer(InferContext& ctx);

// Sets the axis of operator sets before 13, whose default was 1. Unless it is -1, also sets "_flatten": all dimensions
// from the axis on then form one row.
absl::Status UpgradeSoftmax(Graph& graph, Node& node);

// Returns the rows of a tensor of this shape. A scalar is a row of one element.
absl::StatusOr<AxisSplit> SoftmaxRows(const Node& node, std::span<const int64_t> shape);

// Calls row(in, out, n, stride) for each row of n elements, `stride` elements apart.
template <typename RowFn>
absl::Status EvalRows(EvalContext& ctx, RowFn row) {
  const Tensor& x = ctx.input(0);
  MGE_ASSIGN_OR_RETURN(AxisSplit split, SoftmaxRows(ctx.node(), x.shape()));
  MGE_ASSIGN_OR_RETURN(Tensor * y, ctx.Output(0, x.dtype(), x.shape()));
  if (y->elements() == 0) return absl::OkStatus();
  bool known = DispatchFloating(x.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    for (int64_t o = 0; o < split.outer; ++o) {
      for (int64_t i = 0; i < split.inner; ++i) {
        int64_t at = o * split.size * split.inner + i;
        row(x.Data<T>().data() + at, y->MutableData<T>().data() + at, split.size, split.inner);
      }
    }
  });
  return known ? absl::OkStatus() : ctx.Unsupported(std::string(DTypeName(x.dtype())));
}

}  // namespace mge
