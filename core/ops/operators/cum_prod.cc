// SPDX-License-Identifier: Apache-2.0
#include "core/ops/families/cumulative.h"

namespace mge::op_cum_prod {
namespace {

absl::Status Eval(EvalContext& ctx) {
  return EvalCumulative(ctx, 1, [](auto product, auto x) { return MulWrapping(product, x); });
}

}  // namespace

MGE_OP(cum_prod) = {
    .name = "CumProd",
    .doc = "Running product along an axis. Integers wrap around.",
    .inputs = {{"x", kNumeric}, {"axis", kIndex}},
    .outputs = {{"y"}},
    .attrs = {{"exclusive", 0, "not 0: an element is not in its own sum"}, {"reverse", 0, "not 0: from the end"}},
    .infer = InferCumulative,
    .eval = Eval,
    .in_place = {{0, 0}},
    .since = 26,
    .examples = {"(T[3,7]@0.5:1.5, int64[]<1>)", "(T[3,7]@0.5:1.5, int64[]<0>) {exclusive=1, reverse=1}"},
};

}  // namespace mge::op_cum_prod
