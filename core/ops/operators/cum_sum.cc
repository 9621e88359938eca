// SPDX-License-Identifier: Apache-2.0
#include "core/ops/families/cumulative.h"

namespace mge::op_cum_sum {
namespace {

absl::Status Eval(EvalContext& ctx) {
  return EvalCumulative(ctx, 0, [](auto sum, auto x) { return AddWrapping(sum, x); });
}

}  // namespace

MGE_OP(cum_sum) = {
    .name = "CumSum",
    .doc = "Running sum along an axis. Integers wrap around.",
    .inputs = {{"x", kNumeric}, {"axis", kIndex}},
    .outputs = {{"y"}},
    .attrs = {{"exclusive", AttrType::kInt}, {"reverse", AttrType::kInt}},
    .infer = InferCumulative,
    .eval = Eval,
    .in_place = {{0, 0}},
    .since = 11,
    .examples = {"(T[3,7], int64[]<1>)", "(T[3,7], int64[]<0>) {exclusive=1, reverse=1}"},
};

}  // namespace mge::op_cum_sum
