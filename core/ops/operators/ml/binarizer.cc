// SPDX-License-Identifier: Apache-2.0
#include "core/ops/families/ml.h"

namespace mge::op_binarizer {
namespace {

absl::Status Eval(EvalContext& ctx) {
  const float threshold = ctx.attrs().Float("threshold");
  return EvalUnary(ctx, kForNumeric, [threshold](auto x) { return static_cast<decltype(x)>(x > threshold ? 1 : 0); });
}

}  // namespace

MGE_OP(binarizer) = {
    .name = "Binarizer",
    .domain = kMlDomain,
    .doc = "1 for elements above the threshold, else 0.",
    .inputs = {{"X", kMlNumbers}},
    .outputs = {{"Y"}},
    .attrs = {{"threshold", 0.0f, "the limit"}},
    .infer = SameTypeAsFirst,
    .eval = Eval,
    .in_place = {{0, 0}},
    .traits = kElementwise,
    .examples = {"(T[3,37])", "(T[41]) {threshold=1.0}", "(T[70001]) {threshold=-0.5}", "(T[67]@special)"},
};

}  // namespace mge::op_binarizer
