// SPDX-License-Identifier: Apache-2.0
#include "core/ops/families/pool.h"

namespace mge::op_global_lp_pool {
namespace {

absl::Status Upgrade(Graph&, Node& node) { return UpgradeNorm(node); }

absl::Status Infer(InferContext& ctx) {
  MGE_RETURN_IF_ERROR(ReadNorm(ctx.attrs()).status());
  return InferGlobalPool(ctx);
}

absl::Status Eval(EvalContext& ctx) {
  MGE_ASSIGN_OR_RETURN(int64_t p, ReadNorm(ctx.attrs()));
  return EvalGlobalPool(ctx, [p](auto plane) {
    double sum = 0;
    for (double v : plane) sum += std::pow(std::abs(v), static_cast<double>(p));
    return std::pow(sum, 1.0 / static_cast<double>(p));
  });
}

}  // namespace

MGE_OP(global_lp_pool) = {
    .name = "GlobalLpPool",
    .doc = "The p-norm over all spatial axes.",
    .inputs = {{"X", kFloating}},
    .outputs = {{"Y"}},
    .attrs = {{"p", 2, "the norm"}},
    .infer = Infer,
    .eval = Eval,
    .upgrade = Upgrade,
    .examples = {"(T[2,5,7,3])"},
};

}  // namespace mge::op_global_lp_pool
