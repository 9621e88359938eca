// SPDX-License-Identifier: Apache-2.0
#include "core/ops/families/reduce.h"
#include "core/ops/families/reduce_gradient.h"

namespace mge::op_reduce_mean {
namespace {

absl::Status Eval(EvalContext& ctx) {
  MGE_ASSIGN_OR_RETURN(Reduction r, ResolveReduction(ctx));
  if (r.count == 0 && Elements(r.out) > 0 && !kFloating.Contains(ctx.input(0).dtype())) {
    return ctx.Invalid("the mean of zero integers is not defined");
  }
  return EvalReduce(
      ctx, kForNumeric, [](auto) { return 0; }, [](auto sum, auto x, int64_t) { return AddWrapping(sum, x); },
      [n = r.count](auto sum) { return n == 0 ? static_cast<decltype(sum)>(NAN) : sum / static_cast<decltype(sum)>(n); });
}

absl::Status Gradient(GradientContext& g) {
  const Reduced r(g);
  return g.Give(0, r.Spread(r.dy() / r.Count()));
}

}  // namespace

MGE_OP(reduce_mean) = {
    .name = "ReduceMean",
    .doc = "Mean along axes. Integers are rounded towards zero.",
    .inputs = {{"data", kNumeric}, kReduceAxes},
    .outputs = {{"reduced"}},
    .attrs = kReduceAttrs,
    .infer = ReduceInfer,
    .eval = Eval,
    .upgrade = UpgradeReduce,
    .gradient = Gradient,
    .examples = {"(T[3,5,7], int64[1]<1>)", "(T[2,3,4])", "(T[3,37], int64[1]<-1>) {keepdims=0}"},
};

}  // namespace mge::op_reduce_mean
