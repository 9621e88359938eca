// SPDX-License-Identifier: Apache-2.0
#include "core/ops/families/binary.h"

namespace mge::op_less_or_equal {
namespace {

absl::Status Eval(EvalContext& ctx) {
  return EvalBinary<bool>(ctx, kForNumeric, [](auto a, auto b) { return a <= b; });
}

}  // namespace

MGE_OP(less_or_equal) = {
    .name = "LessOrEqual",
    .doc = "True if A is less than or equal to B, with broadcasting. False for NaN.",
    .inputs = {{"A", kNumeric}, {"B", kNumeric}},
    .outputs = {{"C"}},
    .infer = CompareInfer,
    .eval = Eval,
    .traits = kElementwise,
    .since = 12,
};

}  // namespace mge::op_less_or_equal
