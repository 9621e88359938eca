// SPDX-License-Identifier: Apache-2.0
#include "core/ops/families/cumulative.h"
#include "core/ops/gradient.h"

namespace mge::op_cum_sum {
namespace {

absl::Status Eval(EvalContext& ctx) {
  return EvalCumulative(ctx, 0, [](auto sum, auto x) { return AddWrapping(sum, x); });
}

absl::Status Gradient(GradientContext& g) {
  Attributes attrs = IntAttribute("exclusive", g.attrs().Int("exclusive"));
  attrs.Set("reverse", int64_t{g.attrs().Int("reverse") == 0});
  return g.Give(0, g.Of("CumSum", {g.dy().id(), g.x(1).id()}, std::move(attrs)));
}

}  // namespace

MGE_OP(cum_sum) = {
    .name = "CumSum",
    .doc = "Running sum along an axis. Integers wrap around.",
    .inputs = {{"x", kNumeric}, {"axis", kIndex}},
    .outputs = {{"y"}},
    .attrs = {{"exclusive", 0, "not 0: an element is not in its own sum"}, {"reverse", 0, "not 0: from the end"}},
    .infer = InferCumulative,
    .eval = Eval,
    .gradient = Gradient,
    .in_place = {{0, 0}},
    .since = 11,
    .examples = {"(T[3,7], int64[]<1>)", "(T[3,7], int64[]<0>) {exclusive=1, reverse=1}"},
};

}  // namespace mge::op_cum_sum
