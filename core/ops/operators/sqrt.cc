// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "core/ops/families/unary.h"

namespace mge::op_sqrt {
namespace {

absl::Status Eval(EvalContext& ctx) {
  return EvalUnaryFloating(ctx, [](auto x) { return std::sqrt(x); });
}

}  // namespace

MGE_OP(sqrt) = {
    .name = "Sqrt",
    .doc = "Square root. NaN for negative numbers.",
    .inputs = {{"X", kFloating}},
    .outputs = {{"Y"}},
    .infer = SameTypeAsFirst,
    .eval = Eval,
    .upgrade = DropConsumedInputs,
    .in_place = {{0, 0}},
    .traits = kElementwise,
    .examples = {"(T[2,19]@0:9)", "(T[70001]@0:9)", "(T[67]@special)"},
};

}  // namespace mge::op_sqrt
