// SPDX-License-Identifier: Apache-2.0
#include "core/ops/families/binary.h"
#include "core/ops/gradient.h"

namespace mge::op_sub {
namespace {

absl::Status Eval(EvalContext& ctx) {
  return EvalBinary(ctx, kForNumeric, [](auto x, auto y) { return Wrapping(x, y, [](auto a, auto b) { return a - b; }); });
}

absl::Status Gradient(GradientContext& g) {
  MGE_RETURN_IF_ERROR(g.GiveSum(0, g.dy()));
  return g.GiveSum(1, -g.dy());
}

}  // namespace

MGE_OP(sub) = {
    .name = "Sub",
    .doc = "A - B, with broadcasting. Integers wrap around.",
    .inputs = {{"A", kNumeric}, {"B", kNumeric}},
    .outputs = {{"C"}},
    .attrs = {{"_axis", AttrType::kInt}},
    .infer = BinaryInfer,
    .eval = Eval,
    .upgrade = UpgradeOldBroadcast,
    .gradient = Gradient,
    .in_place = {{0, 0}, {0, 1}},
    .traits = kElementwise,
};

}  // namespace mge::op_sub
