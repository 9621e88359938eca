// SPDX-License-Identifier: Apache-2.0
#include "core/ops/families/reduce.h"
#include "core/ops/families/reduce_gradient.h"

namespace mge::op_reduce_prod {
namespace {

absl::Status Eval(EvalContext& ctx) {
  return EvalReduce(
      ctx, kForNumeric, [](auto) { return 1; }, [](auto product, auto x, int64_t) { return MulWrapping(product, x); },
      [](auto product) { return product; });
}

absl::Status Gradient(GradientContext& g) {
  const Reduced r(g);
  return g.Give(0, r.dy() * r.y() / g.x());
}

}  // namespace

MGE_OP(reduce_prod) = {
    .name = "ReduceProd",
    .doc = "Product along axes. Integers wrap around.",
    .inputs = {{"data", kNumeric}, kReduceAxes},
    .outputs = {{"reduced"}},
    .attrs = kReduceAttrs,
    .infer = ReduceInfer,
    .eval = Eval,
    .upgrade = UpgradeReduce,
    .gradient = Gradient,
    .examples = {"(T[3,5,4]@0.5:1.5, int64[1]<1>)", "(T[2,3,4]@0.5:1.5)"},
};

}  // namespace mge::op_reduce_prod
