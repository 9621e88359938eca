// SPDX-License-Identifier: Apache-2.0
#include "core/ops/families/reduce.h"

namespace mge {
namespace {

absl::Status Eval(EvalContext& ctx) {
  return EvalReduce(
      ctx, kForNumeric, [](auto) { return 0; }, [](auto sum, auto x, int64_t) { return AddWrapping(sum, x); },
      [](auto sum) { return sum; });
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
};

}  // namespace mge
