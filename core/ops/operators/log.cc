// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "core/ops/families/unary.h"

namespace mge::op_log {
namespace {

absl::Status Eval(EvalContext& ctx) {
  return EvalUnaryFloating(ctx, [](auto x) { return std::log(x); });
}

}  // namespace

MGE_OP(log) = {
    .name = "Log",
    .doc = "Natural logarithm.",
    .inputs = {{"X", kFloating}},
    .outputs = {{"Y"}},
    .infer = SameTypeAsFirst,
    .eval = Eval,
    .upgrade = DropConsumedInputs,
    .in_place = {{0, 0}},
    .traits = kElementwise,
    .examples = {"(T[37]@0.1:4)", "(T[70001]@0.1:4)", "(T[67]@special)"},
};

}  // namespace mge::op_log
