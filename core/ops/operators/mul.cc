// SPDX-License-Identifier: Apache-2.0
#include "core/ops/families/binary.h"

namespace mge::op_mul {
namespace {

absl::Status Eval(EvalContext& ctx) {
  return EvalBinary(ctx, kForNumeric, [](auto x, auto y) { return Wrapping(x, y, [](auto a, auto b) { return a * b; }); });
}

}  // namespace

MGE_OP(mul) = {
    .name = "Mul",
    .doc = "A * B, with broadcasting. Integers wrap around.",
    .inputs = {{"A", kNumeric}, {"B", kNumeric}},
    .outputs = {{"C"}},
    .attrs = {{"_axis", AttrType::kInt}},
    .infer = BinaryInfer,
    .eval = Eval,
    .upgrade = UpgradeOldBroadcast,
    .in_place = {{0, 0}, {0, 1}},
    .traits = kElementwise | kCommutative,
};

}  // namespace mge::op_mul
