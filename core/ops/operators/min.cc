// SPDX-License-Identifier: Apache-2.0
#include "core/ops/families/variadic.h"

namespace mge::op_min {
namespace {

absl::Status Eval(EvalContext& ctx) {
  return EvalVariadic(ctx, kForNumeric, [](auto a, auto b) { return a < b || a != a ? a : b; });
}

}  // namespace

MGE_OP(min) = {
    .name = "Min",
    .doc = "The smallest of all inputs, with broadcasting. NaN if one of them is NaN.",
    .inputs = {{"data_0", kNumeric}, {"data", kNumeric, Arity::kVariadic}},
    .outputs = {{"min"}},
    .infer = BroadcastInfer,
    .eval = Eval,
    .upgrade = UpgradeVariadic,
    .in_place = {{0, 0}, {0, 1}},
    .traits = kElementwise | kCommutative,
    .examples = {"(T[3,7], T[7], T[3,1])", "(T[37], T[37])", "(T[70001], T[70001])", "(T[67]@special, T[67]@special)",
                 "(T[3,7], =0)"},
};

}  // namespace mge::op_min
