// SPDX-License-Identifier: Apache-2.0
#include "core/ops/families/pool.h"

namespace mge::op_global_max_pool {
namespace {

absl::Status Eval(EvalContext& ctx) {
  return EvalGlobalPool(ctx, [](auto plane) {
    double best = static_cast<double>(plane[0]);
    for (double v : plane) {
      if (v > best || std::isnan(v)) best = v;
    }
    return best;
  });
}

}  // namespace

MGE_OP(global_max_pool) = {
    .name = "GlobalMaxPool",
    .doc = "The largest element over all spatial axes.",
    .inputs = {{"X", kFloating}},
    .outputs = {{"Y"}},
    .infer = InferGlobalPool,
    .eval = Eval,
    .examples = {"(T[2,5,7,3])"},
};

}  // namespace mge::op_global_max_pool
