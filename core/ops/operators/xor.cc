// SPDX-License-Identifier: Apache-2.0
#include "core/ops/families/binary.h"

namespace mge::op_xor {
namespace {

absl::Status Eval(EvalContext& ctx) {
  return EvalBinary(ctx, kForBool, [](bool a, bool b) { return a != b; });
}

}  // namespace

MGE_OP(xor) = {
    .name = "Xor",
    .doc = "Logical exclusive or, with broadcasting.",
    .inputs = {{"A", kBoolean}, {"B", kBoolean}},
    .outputs = {{"C"}},
    .attrs = {{"_axis", AttrType::kInt}},
    .infer = CompareInfer,
    .eval = Eval,
    .upgrade = UpgradeOldBroadcast,
    .in_place = {{0, 0}, {0, 1}},
    .traits = kElementwise | kCommutative,
};

}  // namespace mge::op_xor
