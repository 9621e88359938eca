// SPDX-License-Identifier: Apache-2.0
#include "core/ops/families/arg_reduce.h"
#include "core/ops/families/movement.h"
#include "core/ops/families/reduce.h"

namespace mge::op_cum_sum {
namespace {

absl::Status Infer(InferContext& ctx) {
  if (auto axis = KnownInts(ctx, 1); axis && axis->size() == 1 && ctx.input(0).has_rank) {
    MGE_RETURN_IF_ERROR(NormalizeAxis((*axis)[0], static_cast<int64_t>(ctx.input(0).dims.size())).status());
  }
  return SameTypeAsFirst(ctx);
}

absl::Status Eval(EvalContext& ctx) {
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
        A sum = 0;
        for (int64_t k = 0; k < split.size; ++k) {
          int64_t at = (o * split.size + (reverse ? split.size - 1 - k : k)) * split.inner + i;
          A next = AddWrapping(sum, static_cast<A>(in[at]));
          out[at] = Convert<T>(exclusive ? sum : next);
          sum = next;
        }
      }
    }
  });
  return absl::OkStatus();
}

}  // namespace

MGE_OP(cum_sum) = {
    .name = "CumSum",
    .doc = "Running sum along an axis. Integers wrap around.",
    .inputs = {{"x", kNumeric}, {"axis", kIndex}},
    .outputs = {{"y"}},
    .attrs = {{"exclusive", AttrType::kInt}, {"reverse", AttrType::kInt}},
    .infer = Infer,
    .eval = Eval,
    .in_place = {{0, 0}},
    .since = 11,
    .examples = {"(T[3,7], int64[]<1>)", "(T[3,7], int64[]<0>) {exclusive=1, reverse=1}"},
};

}  // namespace mge::op_cum_sum
