// SPDX-License-Identifier: Apache-2.0
#include "core/ops/families/reduce.h"
#include "core/ops/families/reduce_gradient.h"

namespace mge::op_reduce_sum_square {
namespace {

absl::Status Eval(EvalContext& ctx) {
  return EvalReduce(
      ctx, kForNumeric, [](auto) { return 0; },
      [](auto sum, auto x, int64_t) { return AddWrapping(sum, MulWrapping(x, x)); }, [](auto sum) { return sum; });
}

absl::Status Gradient(GradientContext& g) {
  const Reduced r(g);
  return g.Give(0, r.dy() * g.x() * 2);
}

}  // namespace

MGE_OP(reduce_sum_square) = {
    .name = "ReduceSumSquare",
    .doc = "Sum of squares along axes.",
    .inputs = {{"data", kNumeric}, kReduceAxes},
    .outputs = {{"reduced"}},
    .attrs = kReduceAttrs,
    .infer = ReduceInfer,
    .eval = Eval,
    .upgrade = UpgradeReduce,
    .gradient = Gradient,
    .examples = {"(T[3,5,7], int64[1]<1>)", "(T[2,3,4])"},
};

}  // namespace mge::op_reduce_sum_square
