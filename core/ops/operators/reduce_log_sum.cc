// SPDX-License-Identifier: Apache-2.0
#include "core/ops/families/reduce.h"
#include "core/ops/families/reduce_gradient.h"

namespace mge::op_reduce_log_sum {
namespace {

absl::Status Eval(EvalContext& ctx) {
  return EvalReduce(
      ctx, kForNumeric, [](auto) { return 0; }, [](auto sum, auto x, int64_t) { return AddWrapping(sum, x); },
      [](auto sum) { return std::log(static_cast<double>(sum)); });
}

absl::Status Gradient(GradientContext& g) {
  const Reduced r(g);
  return g.Give(0, r.Spread(r.dy() / Unary("Exp", r.y())));
}

}  // namespace

MGE_OP(reduce_log_sum) = {
    .name = "ReduceLogSum",
    .doc = "Logarithm of the sum along axes.",
    .inputs = {{"data", kNumeric}, kReduceAxes},
    .outputs = {{"reduced"}},
    .attrs = kReduceAttrs,
    .infer = ReduceInfer,
    .eval = Eval,
    .upgrade = UpgradeReduce,
    .gradient = Gradient,
    .examples = {"(T[3,5,7]@0.5:2, int64[1]<1>)", "(T[2,3,4]@0.5:2)"},
};

}  // namespace mge::op_reduce_log_sum
