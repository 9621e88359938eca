// SPDX-License-Identifier: Apache-2.0
#include "core/ops/families/variadic.h"
#include "core/ops/gradient.h"

namespace mge::op_sum {
namespace {

absl::Status Eval(EvalContext& ctx) {
  return EvalVariadic(ctx, kForFloating, [](auto a, auto b) { return a + b; });
}

absl::Status Gradient(GradientContext& g) {
  for (int i = 0; i < g.input_count(); ++i) MGE_RETURN_IF_ERROR(g.GiveSum(i, g.dy()));
  return absl::OkStatus();
}

}  // namespace

MGE_OP(sum) = {
    .name = "Sum",
    .doc = "Sum of all inputs, with broadcasting.",
    .inputs = {{"data_0", kFloating}, {"data", kFloating, Arity::kVariadic}},
    .outputs = {{"sum"}},
    .infer = BroadcastInfer,
    .eval = Eval,
    .upgrade = UpgradeVariadic,
    .gradient = Gradient,
    .in_place = {{0, 0}, {0, 1}},
    .traits = kElementwise | kCommutative,
    .examples = {"(T[3,7], T[7], T[3,1])", "(T[37], T[37])", "(T[70001], T[70001])", "(T[67]@special, T[67]@special)",
                 "(T[3,7], =0, T[7])"},
};

}  // namespace mge::op_sum
