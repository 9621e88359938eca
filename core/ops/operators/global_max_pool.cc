// SPDX-License-Identifier: Apache-2.0
#include "core/ops/families/pool.h"
#include "core/ops/gradient.h"

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

// Divides the gradient among the largest elements.
absl::Status Gradient(GradientContext& g) {
  const Term y = g.y(), largest = g.CastTo(Binary("Equal", g.x(), y), g.dtype());
  return g.Give(0, largest * (g.dy() / g.SumTo(largest, y)));
}

}  // namespace

MGE_OP(global_max_pool) = {
    .name = "GlobalMaxPool",
    .doc = "The largest element over all spatial axes.",
    .inputs = {{"X", kFloating}},
    .outputs = {{"Y"}},
    .infer = InferGlobalPool,
    .eval = Eval,
    .gradient = Gradient,
    .examples = {"(T[2,5,7,3])"},
};

}  // namespace mge::op_global_max_pool
