// SPDX-License-Identifier: Apache-2.0
#include "core/ops/families/binary.h"

namespace mge::op_greater_or_equal {
namespace {

absl::Status Eval(EvalContext& ctx) {
  return EvalBinary<bool>(ctx, kForNumeric, [](auto a, auto b) { return a >= b; });
}

}  // namespace

MGE_OP(greater_or_equal) = {
    .name = "GreaterOrEqual",
    .doc = "True if A is greater than or equal to B, with broadcasting. False for NaN.",
    .inputs = {{"A", kNumeric}, {"B", kNumeric}},
    .outputs = {{"C"}},
    .infer = CompareInfer,
    .eval = Eval,
    .traits = kElementwise,
    .since = 12,
};

}  // namespace mge::op_greater_or_equal
