// SPDX-License-Identifier: Apache-2.0
#include "core/ops/families/update.h"

namespace mge::op_assign {
namespace {

absl::Status Eval(EvalContext& ctx) { return ctx.SetOutput(0, ctx.value(1)); }

}  // namespace

MGE_OP(assign) = {
    .name = "Assign",
    .domain = "mge",
    .doc = "Writes value to the memory of target, and returns it. A target that is an initializer keeps it for later runs.",
    .inputs = {{"target", kFixedSize}, {"value", kFixedSize}},
    .outputs = {{"Y"}},
    .infer = UpdateInfer,
    .eval = Eval,
    .traits = kAssigns,
};

}  // namespace mge::op_assign
