// SPDX-License-Identifier: Apache-2.0
#include <vector>

#include "core/ops/families/binary.h"
#include "core/ops/families/normalization.h"
#include "core/ops/function_body.h"
#include "core/ops/gradient.h"

namespace mge::op_mean_variance_normalization {
namespace {

constexpr double kEpsilon = 1e-9;  // defined by the operator, added to the standard deviation

absl::StatusOr<Ints> AxesOf(const Node& node, int64_t rank) {
  Ints axes = node.attrs.IntList("axes");
  if (axes.empty()) return axes;
  return NormalizeAxes(axes, rank);
}

// Operator sets before 9 had it as an experimental operator for images.
absl::Status Upgrade(Graph&, Node& node) {
  if (node.version >= 9) return absl::OkStatus();
  if (node.attrs.Int("across_channels") != 0) node.attrs.Set("axes", Ints{0, 1, 2, 3});
  if (node.attrs.Int("normalize_variance", 1) == 0) node.attrs.Set("_only_mean", int64_t{1});
  node.attrs.Remove("across_channels");
  node.attrs.Remove("normalize_variance");
  return absl::OkStatus();
}

absl::Status Infer(InferContext& ctx) {
  if (ctx.input(0).has_rank) {
    MGE_RETURN_IF_ERROR(AxesOf(ctx.node(), static_cast<int64_t>(ctx.input(0).dims.size())).status());
  }
  return SameTypeAsFirst(ctx);
}

absl::StatusOr<bool> Body(FunctionBody& f) {
  if (f.AppliesInFloat32()) return true;
  const Ints axes = f.attrs().IntList("axes");
  auto mean = [&](const Term& x) { return axes.empty() ? x : f.Mean(x, axes); };
  const Term centered = f.x() - mean(f.x());
  if (f.attrs().Int("_only_mean") != 0) {
    f.Result(0, "Identity", {centered.id()});
    return true;
  }
  f.Result(0, "Div", {centered.id(), (Unary("Sqrt", mean(centered * centered)) + kEpsilon).id()});
  return true;
}

}  // namespace

MGE_OP(mean_variance_normalization) = {
    .name = "MeanVarianceNormalization",
    .doc = "(x - mean) / standard deviation over the given axes. Default: all axes but the channels.",
    .inputs = {{"X", kFloating}},
    .outputs = {{"Y"}},
    .attrs = {AxisOf({"axes", {0, 2, 3}, "the axes"}), {"_only_mean", AttrType::kInt}},
    .infer = Infer,
    .eval = EvalByBody,
    .upgrade = Upgrade,
    .gradient = ReplacementGradient,
    .body = Body,
    .in_place = {{0, 0}},
    .examples = {"(T[2,3,5,4])"},
};

}  // namespace mge::op_mean_variance_normalization
