// SPDX-License-Identifier: Apache-2.0
// Operators that find the position of the best element along an axis.
#pragma once

#include "core/ops/infer_checks.h"
#include "core/ops/op_helpers.h"

namespace mge {

// Sets output 0 to int64 with input 0's shape. The dimension "axis" is removed, or has size 1 with "keepdims".
absl::Status ArgReduceInfer(InferContext& ctx);

// A shape split at one axis: the elements before it, its size, and the elements after it.
struct AxisSplit {
  int64_t outer = 1, size = 1, inner = 1;
};
AxisSplit SplitAtAxis(std::span<const int64_t> shape, int64_t axis);

// Evaluates ArgMax or ArgMin. better(a, b) returns true if a is preferred to b. NaN is preferred to every number. Among
// equal elements, chooses the first, or the last with "select_last_index".
template <typename Better>
absl::Status EvalArgReduce(EvalContext& ctx, Better better) {
  const Tensor& x = ctx.input(0);
  MGE_ASSIGN_OR_RETURN(int64_t axis, NormalizeAxis(ctx.attrs().Int("axis"), x.rank()));
  bool last = ctx.attrs().Int("select_last_index") != 0;
  Shape shape = x.shape();
  if (ctx.attrs().Int("keepdims") != 0) {
    shape[axis] = 1;
  } else {
    shape.erase(shape.begin() + axis);
  }
  AxisSplit split = SplitAtAxis(x.shape(), axis);
  if (split.size == 0 && split.outer * split.inner > 0) return ctx.Invalid("the axis has no elements to choose from");
  MGE_ASSIGN_OR_RETURN(Tensor * y, ctx.Output(0, DType::kI64, std::move(shape)));
  if (y->elements() == 0) return absl::OkStatus();
  bool known = DispatchNumeric(x.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    const T* in = x.Data<T>().data();
    int64_t* out = y->MutableData<int64_t>().data();
    for (int64_t o = 0; o < split.outer; ++o) {
      for (int64_t i = 0; i < split.inner; ++i) {
        const T* row = in + o * split.size * split.inner + i;
        int64_t best = 0;
        for (int64_t k = 1; k < split.size; ++k) {
          auto a = static_cast<Compute<T>>(row[k * split.inner]), b = static_cast<Compute<T>>(row[best * split.inner]);
          if (better(a, b) || (a != a && b == b) || (last && (a == b || (a != a && b != b)))) best = k;
        }
        out[o * split.inner + i] = best;
      }
    }
  });
  return known ? absl::OkStatus() : ctx.Unsupported(std::string(DTypeName(x.dtype())));
}

}  // namespace mge
