// SPDX-License-Identifier: Apache-2.0
#include "core/ops/families/collective.h"

namespace mge::op_broadcast {
namespace {

absl::Status Infer(InferContext& ctx) {
  if (const int64_t root = ctx.attrs().Int("root"); root < 0) {
    return ctx.Invalid(fmt::format("root is {}, expected a rank, counted from 0", root));
  }
  return CollectiveInfer(ctx);
}

}  // namespace

MGE_OP(broadcast) = {
    .name = "Broadcast",
    .domain = "mge",
    .doc = "Each input as the rank `root` has it (settings collective.*). The other ranks' inputs only have its shape.",
    .inputs = {{"X", kFixedSize, Arity::kVariadic}},
    .outputs = {{"Y", kAnyType, Arity::kVariadic}},
    .attrs = {{"root", 0, "the rank that sends"}},
    .infer = Infer,
    .eval = EvalOneRank,
    .traits = kBroadcast,
};

}  // namespace mge::op_broadcast
