// SPDX-License-Identifier: Apache-2.0
// Operators that write to the memory of their first input.
#include "core/ops/families/binary.h"
#include "core/ops/families/update.h"

namespace mge::op_writes {
namespace {

absl::Status EvalAccumulate(EvalContext& ctx) {
  return EvalBinary(ctx, kForNumeric, [](auto x, auto y) { return Wrapping(x, y, [](auto a, auto b) { return a + b; }); });
}

constexpr OpDef kRows[] = {
    {.name = "Accumulate",
     .domain = "mge",
     .doc = "Adds value to target in the memory of target, and returns the sum. Integers wrap around. A target that is an "
            "initializer keeps it for later runs.",
     .inputs = {{"target", kNumeric}, {"value", kNumeric}},
     .outputs = {{"Y"}},
     .infer = UpdateInfer,
     .eval = EvalAccumulate,
     .in_place = {{0, 0}},
     .traits = kAccumulates},
    {.name = "Assign",
     .domain = "mge",
     .doc = "Writes value to the memory of target, and returns it. A target that is an initializer keeps it for later runs.",
     .inputs = {{"target", kFixedSize}, {"value", kFixedSize}},
     .outputs = {{"Y"}},
     .infer = UpdateInfer,
     .eval = [](EvalContext& ctx) { return ctx.SetOutput(0, ctx.value(1)); },
     .traits = kAssigns},
};

}  // namespace

MGE_OPS(writes) = kRows;

}  // namespace mge::op_writes
