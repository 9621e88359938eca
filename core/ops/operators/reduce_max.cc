// SPDX-License-Identifier: Apache-2.0
#include "core/ops/families/reduce.h"
#include "core/ops/families/reduce_gradient.h"

namespace mge::op_reduce_max {
namespace {

absl::Status Eval(EvalContext& ctx) {
  return EvalReduce(
      ctx, kForFixedSize,
      [](auto t) {
        using T = decltype(t);
        if constexpr (kIsFloating<T>) {
          return -std::numeric_limits<double>::infinity();
        } else {
          return static_cast<Accumulator<T>>(std::numeric_limits<T>::lowest());
        }
      },
      [](auto best, auto x, int64_t) { return best > x || best != best ? best : x; }, [](auto best) { return best; });
}

absl::Status Gradient(GradientContext& g) {
  const Reduced r(g);
  return g.Give(0, r.Share());
}

}  // namespace

MGE_OP(reduce_max) = {
    .name = "ReduceMax",
    .doc = "The largest element along axes. NaN if one of them is NaN.",
    .inputs = {{"data", kFixedSize}, kReduceAxes},
    .outputs = {{"reduced"}},
    .attrs = kReduceAttrs,
    .infer = ReduceInfer,
    .eval = Eval,
    .upgrade = UpgradeReduce,
    .gradient = Gradient,
    .examples = {"(T[3,5,7], int64[1]<1>)", "(T[2,3,4])", "(T[2,3,5,7])", "(T[2,20011], int64[1]<-1>)"},
};

}  // namespace mge::op_reduce_max
