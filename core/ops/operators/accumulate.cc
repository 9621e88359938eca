// SPDX-License-Identifier: Apache-2.0
#include "core/ops/families/binary.h"
#include "core/ops/families/update.h"

namespace mge::op_accumulate {
namespace {

absl::Status Eval(EvalContext& ctx) {
  return EvalBinary(ctx, kForNumeric, [](auto x, auto y) { return Wrapping(x, y, [](auto a, auto b) { return a + b; }); });
}

}  // namespace

MGE_OP(accumulate) = {
    .name = "Accumulate",
    .domain = "mge",
    .doc =
        "Adds value to target in the memory of target, and returns the sum. Integers wrap around. A target that is an "
        "initializer keeps it for "
        "later runs.",
    .inputs = {{"target", kNumeric}, {"value", kNumeric}},
    .outputs = {{"Y"}},
    .infer = UpdateInfer,
    .eval = Eval,
    .in_place = {{0, 0}},
    .traits = kAccumulates,
};

}  // namespace mge::op_accumulate
