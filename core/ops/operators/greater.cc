// SPDX-License-Identifier: Apache-2.0
#include "core/ops/families/binary.h"

namespace mge::op_greater {
namespace {

absl::Status Eval(EvalContext& ctx) {
  return EvalBinary<bool>(ctx, kForNumeric, [](auto a, auto b) { return a > b; });
}

}  // namespace

MGE_OP(greater) = {
    .name = "Greater",
    .doc = "True if A is greater than B, with broadcasting. False for NaN.",
    .inputs = {{"A", kNumeric}, {"B", kNumeric}},
    .outputs = {{"C"}},
    .attrs = {{"_axis", AttrType::kInt}},
    .infer = CompareInfer,
    .eval = Eval,
    .upgrade = UpgradeOldBroadcast,
    .traits = kElementwise,
};

}  // namespace mge::op_greater
