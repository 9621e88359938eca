// SPDX-License-Identifier: Apache-2.0
#include "core/ops/families/pool.h"
#include "core/ops/gradient.h"

namespace mge::op_global_average_pool {
namespace {

absl::Status Eval(EvalContext& ctx) {
  return EvalGlobalPool(ctx, [](auto plane) {
    double sum = 0;
    for (auto v : plane) sum += v;
    return sum / static_cast<double>(plane.size());
  });
}

absl::Status Gradient(GradientContext& g) {
  const Term elements = g.CastTo(Unary("Size", g.x()), g.dtype()) / g.CastTo(Unary("Size", g.dy()), g.dtype());
  return g.Give(0, g.Of("Expand", {(g.dy() / elements).id(), g.ShapeOf(g.x())}));
}

}  // namespace

MGE_OP(global_average_pool) = {
    .name = "GlobalAveragePool",
    .doc = "The mean over all spatial axes.",
    .inputs = {{"X", kFloating}},
    .outputs = {{"Y"}},
    .infer = InferGlobalPool,
    .eval = Eval,
    .gradient = Gradient,
    .examples = {"(T[2,5,7,3])"},
};

}  // namespace mge::op_global_average_pool
