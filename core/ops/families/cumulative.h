// SPDX-License-Identifier: Apache-2.0
// Running sums and products along an axis.
#pragma once

#include "core/ops/families/arg_reduce.h"
#include "core/ops/families/movement.h"
#include "core/ops/families/reduce.h"

namespace mge {

inline absl::Status InferCumulative(InferContext& ctx) {
  if (auto axis = KnownInts(ctx, 1); axis && ctx.input(0).has_rank) {
    if (axis->size() != 1) return ctx.Invalid(fmt::format("input axis has {} elements, expected 1", axis->size()));
    MGE_RETURN_IF_ERROR(NormalizeAxis((*axis)[0], static_cast<int64_t>(ctx.input(0).dims.size())).status());
  }
  return SameTypeAsFirst(ctx);
}

// Sets each element to step(...step(start, x)..., x) over the elements before it, with itself unless "exclusive".
template <typename Step>
absl::Status EvalCumulative(EvalContext& ctx, int start, Step step) {
  const Tensor& x = ctx.input(0);
  MGE_ASSIGN_OR_RETURN(int64_t axis, ScalarInt("axis", ctx.input(1)));
  MGE_ASSIGN_OR_RETURN(axis, NormalizeAxis(axis, x.rank()));
  bool exclusive = ctx.attrs().Int("exclusive") != 0, reverse = ctx.attrs().Int("reverse") != 0;
  AxisSplit split = SplitAtAxis(x.shape(), axis);
  MGE_ASSIGN_OR_RETURN(Tensor * y, ctx.Output(0, x.dtype(), x.shape()));
  if (y->elements() == 0) return absl::OkStatus();
  DispatchNumeric(x.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    using A = Accumulator<T>;
    const T* in = x.Data<T>().data();
    T* out = y->MutableData<T>().data();
    for (int64_t o = 0; o < split.outer; ++o) {
      for (int64_t i = 0; i < split.inner; ++i) {
        A total = static_cast<A>(start);
        for (int64_t k = 0; k < split.size; ++k) {
          int64_t at = (o * split.size + (reverse ? split.size - 1 - k : k)) * split.inner + i;
          A next = step(total, static_cast<A>(in[at]));
          out[at] = Convert<T>(exclusive ? total : next);
          total = next;
        }
      }
    }
  });
  return absl::OkStatus();
}

}  // namespace mge
