// SPDX-License-Identifier: Apache-2.0
#include "core/ops/families/unary.h"
#include "core/ops/gradient.h"

namespace mge::op_identity {
namespace {

absl::Status Eval(EvalContext& ctx) { return ctx.SetOutput(0, ctx.value(0)); }

absl::Status Upgrade(Graph& graph, Node& node) { return DropConsumedInputs(graph, node); }

absl::Status Gradient(GradientContext& g) { return g.Set(0, g.dy()); }

}  // namespace

MGE_OP(identity) = {
    .name = "Identity",
    .doc = "The input unchanged: a tensor, sequence or optional.",
    .inputs = {{.name = "input", .any_kind = true}},
    .outputs = {{"output"}},
    .infer = SameTypeAsFirst,
    .eval = Eval,
    .upgrade = Upgrade,
    .gradient = Gradient,
    .in_place = {{0, 0}},
    .traits = kElementwise | kIdentity,
    .examples = {"(T[3,7])", "(T[70001])", "(T[67]@special)"},
};

}  // namespace mge::op_identity
