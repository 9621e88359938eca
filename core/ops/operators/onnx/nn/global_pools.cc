// SPDX-License-Identifier: Apache-2.0
// Pools over all spatial axes.
#include "core/ops/families/pool.h"
#include "core/ops/gradient.h"

namespace mge::op_global_pools {
namespace {

absl::Status EvalGlobalAveragePool(EvalContext& ctx) {
  return EvalGlobalPool(ctx, [](auto plane) {
    double sum = 0;
    for (auto v : plane) sum += v;
    return sum / static_cast<double>(plane.size());
  });
}

absl::Status GlobalAveragePoolGradient(GradientContext& g) {
  const Term elements = g.CastTo(Unary("Size", g.x()), g.dtype()) / g.CastTo(Unary("Size", g.dy()), g.dtype());
  return g.Set(0, g.Of("Expand", {(g.dy() / elements).id(), g.ShapeOf(g.x())}));
}

absl::Status UpgradeGlobalLpPool(Graph&, Node& node) { return UpgradeNorm(node); }

absl::Status InferGlobalLpPool(InferContext& ctx) {
  MGE_RETURN_IF_ERROR(ReadNorm(ctx.attrs()).status());
  return InferGlobalPool(ctx);
}

absl::Status EvalGlobalLpPool(EvalContext& ctx) {
  MGE_ASSIGN_OR_RETURN(int64_t p, ReadNorm(ctx.attrs()));
  return EvalGlobalPool(ctx, [p](auto plane) {
    double sum = 0;
    for (double v : plane) sum += std::pow(std::abs(v), static_cast<double>(p));
    return std::pow(sum, 1.0 / static_cast<double>(p));
  });
}

absl::Status EvalGlobalMaxPool(EvalContext& ctx) {
  return EvalGlobalPool(ctx, [](auto plane) {
    double best = static_cast<double>(plane[0]);
    for (double v : plane) {
      if (v > best || std::isnan(v)) best = v;
    }
    return best;
  });
}

// Divides the gradient among the largest elements.
absl::Status GlobalMaxPoolGradient(GradientContext& g) {
  const Term y = g.y(), largest = g.CastTo(Binary("Equal", g.x(), y), g.dtype());
  return g.Set(0, largest * (g.dy() / g.SumTo(largest, y)));
}

constexpr OpDef kRows[] = {
    {.name = "GlobalAveragePool",
     .doc = "The mean over all spatial axes.",
     .inputs = {{"X", kFloating}},
     .outputs = {{"Y"}},
     .infer = InferGlobalPool,
     .eval = EvalGlobalAveragePool,
     .gradient = GlobalAveragePoolGradient,
     .examples = {"(T[2,5,7,3])", "(T[5,3,2,7]@rare)"}},
    {.name = "GlobalLpPool",
     .doc = "The p-norm over all spatial axes.",
     .inputs = {{"X", kFloating}},
     .outputs = {{"Y"}},
     .attrs = {{"p", 2, "the norm"}},
     .infer = InferGlobalLpPool,
     .eval = EvalGlobalLpPool,
     .upgrade = UpgradeGlobalLpPool,
     .examples = {"(T[2,5,7,3])"}},
    {.name = "GlobalMaxPool",
     .doc = "The largest element over all spatial axes.",
     .inputs = {{"X", kFloating}},
     .outputs = {{"Y"}},
     .infer = InferGlobalPool,
     .eval = EvalGlobalMaxPool,
     .gradient = GlobalMaxPoolGradient,
     .examples = {"(T[2,5,7,3])", "(T[5,3,2,7]@rare)"}},
};

}  // namespace

MGE_OPS(global_pools) = kRows;

}  // namespace mge::op_global_pools
