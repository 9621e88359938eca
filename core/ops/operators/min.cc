// SPDX-License-Identifier: Apache-2.0
#include "core/ops/families/variadic.h"
#include "core/ops/gradient.h"

namespace mge::op_min {
namespace {

absl::Status Eval(EvalContext& ctx) {
  return EvalVariadic(ctx, kForNumeric, [](auto a, auto b) { return a < b || a != a ? a : b; });
}

// Inputs that are equal to the result share the gradient.
absl::Status Gradient(GradientContext& g) {
  std::vector<Term> equal;
  for (int i = 0; i < g.input_count(); ++i) equal.push_back(g.CastTo(Binary("Equal", g.x(i), g.y()), g.dtype()));
  Term count = equal[0];
  for (size_t i = 1; i < equal.size(); ++i) count = count + equal[i];
  for (int i = 0; i < g.input_count(); ++i) {
    MGE_RETURN_IF_ERROR(g.GiveSum(i, g.dy() * equal[static_cast<size_t>(i)] / count));
  }
  return absl::OkStatus();
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
    .gradient = Gradient,
    .in_place = {{0, 0}, {0, 1}},
    .traits = kElementwise | kCommutative,
    .examples = {"(T[3,7], T[7], T[3,1])", "(T[37], T[37])", "(T[70001], T[70001])", "(T[67]@special, T[67]@special)",
                 "(T[3,7], =0)"},
};

}  // namespace mge::op_min
