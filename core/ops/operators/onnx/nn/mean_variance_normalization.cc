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

absl::Status Eval(EvalContext& ctx) {
  const Tensor& x = ctx.input(0);
  MGE_ASSIGN_OR_RETURN(Ints axes, AxesOf(ctx.node(), x.rank()));
  Shape kept = x.shape();
  for (int64_t a : axes) kept[a] = 1;
  MGE_ASSIGN_OR_RETURN(Tensor * y, ctx.Output(0, x.dtype(), x.shape()));
  if (y->elements() == 0) return absl::OkStatus();
  int64_t groups = Elements(kept);
  double n = static_cast<double>(x.elements() / groups);
  std::vector<double> mean(groups, 0), deviation(groups, 0);
  DispatchFloating(x.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    const T* in = x.Data<T>().data();
    T* out = y->MutableData<T>().data();
    auto each = [&](auto f) { ForBroadcast(x.shape(), kept, x.shape(), [&](int64_t i, int64_t, int64_t g) { f(i, g); }); };
    each([&](int64_t i, int64_t g) { mean[g] += static_cast<double>(in[i]) / n; });
    each([&](int64_t i, int64_t g) {
      double d = static_cast<double>(in[i]) - mean[g];
      deviation[g] += d * d / n;
    });
    const bool only_mean = ctx.attrs().Int("_only_mean") != 0;
    for (double& d : deviation) d = only_mean ? 1 : std::sqrt(d) + kEpsilon;
    each([&](int64_t i, int64_t g) { out[i] = Rounded<T>((static_cast<double>(in[i]) - mean[g]) / deviation[g]); });
  });
  return absl::OkStatus();
}

absl::StatusOr<bool> Body(FunctionBody& f) {
  const Ints axes = f.attrs().IntList("axes");
  if (axes.empty()) return false;
  if (f.AppliesInFloat32()) return true;
  const Term centered = f.x() - f.Mean(f.x(), axes);
  if (f.attrs().Int("_only_mean") != 0) {
    f.Result(0, "Identity", {centered.id()});
    return true;
  }
  f.Result(0, "Div", {centered.id(), (Unary("Sqrt", f.Mean(centered * centered, axes)) + kEpsilon).id()});
  return true;
}

absl::StatusOr<bool> GradientBody(FunctionBody& f) {
  if (f.attrs().IntList("axes").empty()) return f.Unsupported("the gradient without axes");
  return Body(f);
}

}  // namespace

MGE_OP(mean_variance_normalization) = {
    .name = "MeanVarianceNormalization",
    .doc = "(x - mean) / standard deviation over the given axes. Default: all axes but the channels.",
    .inputs = {{"X", kFloating}},
    .outputs = {{"Y"}},
    .attrs = {AxisOf({"axes", {0, 2, 3}, "the axes"}), {"_only_mean", AttrType::kInt}},
    .infer = Infer,
    .eval = Eval,
    .upgrade = Upgrade,
    .gradient = ReplacementGradient,
    .body = Body,
    .gradient_body = GradientBody,
    .in_place = {{0, 0}},
    .examples = {"(T[2,3,5,4])"},
};

}  // namespace mge::op_mean_variance_normalization
