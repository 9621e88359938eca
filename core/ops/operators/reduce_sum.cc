// SPDX-License-Identifier: Apache-2.0
#include "core/ops/families/reduce.h"
#include "core/ops/families/reduce_gradient.h"

namespace mge::op_reduce_sum {
namespace {

absl::Status Eval(EvalContext& ctx) {
  return EvalReduce(
      ctx, kForNumeric, [](auto) { return 0; }, [](auto sum, auto x, int64_t) { return AddWrapping(sum, x); },
      [](auto sum) { return sum; });
}

absl::Status Gradient(GradientContext& g) {
  const Reduced r(g);
  return g.Give(0, r.Spread(r.dy()));
}

}  // namespace

MGE_OP(reduce_sum) = {
    .name = "ReduceSum",
    .doc = "Sum along axes. Integers wrap around.",
    .inputs = {{"data", kNumeric}, kReduceAxes},
    .outputs = {{"reduced"}},
    .attrs = kReduceAttrs,
    .infer = ReduceInfer,
    .eval = Eval,
    .upgrade = UpgradeReduce,
    .gradient = Gradient,
    .examples = {"(T[3,5,7], int64[1]<1>)", "(T[3,37], int64[1]<-1>) {keepdims=0}", "(T[2,3,5,7])",
                 "(T[5,1,3], int64[2]<0,2>)", "(T[2,20011], int64[1]<-1>)", "(T[5003,2], int64[1]<0>)"},
};

}  // namespace mge::op_reduce_sum
