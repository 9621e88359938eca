// SPDX-License-Identifier: Apache-2.0
#include "core/ops/families/pool.h"

namespace mge::op_global_average_pool {
namespace {

absl::Status Eval(EvalContext& ctx) {
  return EvalGlobalPool(ctx, [](auto plane) {
    double sum = 0;
    for (auto v : plane) sum += v;
    return sum / static_cast<double>(plane.size());
  });
}

}  // namespace

MGE_OP(global_average_pool) = {
    .name = "GlobalAveragePool",
    .doc = "The mean over all spatial axes.",
    .inputs = {{"X", kFloating}},
    .outputs = {{"Y"}},
    .infer = InferGlobalPool,
    .eval = Eval,
    .examples = {"(T[2,5,7,3])"},
};

}  // namespace mge::op_global_average_pool
