// SPDX-License-Identifier: Apache-2.0
#include "core/ops/families/binary.h"

namespace mge::op_equal {
namespace {

absl::Status Eval(EvalContext& ctx) {
  if (ctx.input(0).dtype() == DType::kString) {
    return EvalBinary<bool>(ctx, kForString, [](const std::string& a, const std::string& b) { return a == b; });
  }
  return EvalBinary<bool>(ctx, kForFixedSize, [](auto a, auto b) { return a == b; });
}

}  // namespace

MGE_OP(equal) = {
    .name = "Equal",
    .doc = "True if A equals B, with broadcasting. False for NaN.",
    .inputs = {{"A", kFixedSize | kStrings}, {"B", kFixedSize | kStrings}},
    .outputs = {{"C"}},
    .attrs = {{"_axis", AttrType::kInt}},
    .infer = CompareInfer,
    .eval = Eval,
    .upgrade = UpgradeOldBroadcast,
    .traits = kElementwise | kCommutative,
};

}  // namespace mge::op_equal
