// SPDX-License-Identifier: Apache-2.0
#include "core/ops/families/resize.h"
#include "core/ops/gradient.h"
#include "core/ops/op_helpers.h"
#include "fmt/format.h"

namespace mge::op_upsample {
namespace {

// Converts the scales to an input. Before operator set 7 they were the attributes height_scale and width_scale, then a
// list until operator set 9.
absl::Status Upgrade(Graph& graph, Node& node) {
  if (node.version >= 9) return absl::OkStatus();
  Floats scales = node.attrs.FloatList("scales");
  if (node.version < 7) {
    for (std::string_view name : {"height_scale", "width_scale"}) {
      if (!node.attrs.Has(name)) return Fail(errors::kInvalidNode, fmt::format("attribute {} is missing", name));
    }
    scales = {1, 1, node.attrs.Float("height_scale"), node.attrs.Float("width_scale")};
    node.attrs.Remove("height_scale");
    node.attrs.Remove("width_scale");
    // The mode was called bilinear, because only two axes could be resized.
    if (node.attrs.Text("mode") == "bilinear") node.attrs.Set("mode", std::string("linear"));
  }
  node.attrs.Remove("scales");
  node.inputs.resize(2, kNone);
  node.inputs[1] = graph.AddConstant(node.name + "_scales", Tensor::Vector<float>(scales));
  return absl::OkStatus();
}

absl::StatusOr<ResizeOptions> Options(const Attributes& attrs) {
  ResizeOptions options;
  MGE_ASSIGN_OR_RETURN(int mode, ReadChoice(attrs, "mode", {"nearest", "linear"}));
  options.mode = mode == 0 ? ResizeOptions::Mode::kNearest : ResizeOptions::Mode::kLinear;
  options.coordinates = ResizeOptions::Coordinates::kAsymmetric;
  options.nearest = ResizeOptions::Nearest::kFloor;
  return options;
}

absl::StatusOr<std::vector<ResizeAxis>> Resolve(std::span<const int64_t> x, const Tensor& scales) {
  std::span<const float> values = scales.Data<float>();
  MGE_RETURN_IF_ERROR(
      RequireSize("the number of scales", static_cast<int64_t>(values.size()), static_cast<int64_t>(x.size())));
  std::vector<ResizeAxis> axes(x.size());
  for (size_t i = 0; i < x.size(); ++i) {
    axes[i].in = x[i];
    MGE_ASSIGN_OR_RETURN(axes[i].out, ScaledSize(x[i], values[i]));
    if (values[i] < 1) {
      return Fail(errors::kInvalidNode, fmt::format("scale {} of axis {} must be at least 1", values[i], i));
    }
    axes[i].scale = values[i];
  }
  return axes;
}

absl::Status Infer(InferContext& ctx) {
  MGE_RETURN_IF_ERROR(Options(ctx.attrs()).status());
  const TensorType& x = ctx.input(0);
  TensorType y = UnrankedType(x.dtype);
  if (x.has_rank) {
    y = MakeType(x.dtype, Shape(x.dims.size(), kUnknownDim));
    if (const Tensor* scales = ctx.constant(1)) {
      MGE_ASSIGN_OR_RETURN(std::vector<ResizeAxis> axes, Resolve(x.dims, *scales));
      for (size_t i = 0; i < axes.size(); ++i) y.dims[i] = axes[i].out;
    }
  }
  ctx.SetOutput(0, std::move(y));
  return absl::OkStatus();
}

absl::Status Eval(EvalContext& ctx) {
  MGE_ASSIGN_OR_RETURN(ResizeOptions options, Options(ctx.attrs()));
  MGE_ASSIGN_OR_RETURN(std::vector<ResizeAxis> axes, Resolve(ctx.input(0).shape(), ctx.input(1)));
  return EvalResize(ctx, options, axes);
}

absl::StatusOr<bool> GradientBody(FunctionBody& f) {
  if (!f.IsStatic() || !f.constant(1)) return false;
  MGE_ASSIGN_OR_RETURN(const ResizeOptions options, Options(f.attrs()));
  MGE_ASSIGN_OR_RETURN(const std::vector<ResizeAxis> axes, Resolve(f.dims(0), *f.constant(1)));
  MGE_RETURN_IF_ERROR(AddResize(f, options, axes));
  return true;
}

}  // namespace

MGE_OP(upsample) = {
    .name = "Upsample",
    .doc = "Enlarges along axes, by nearest or linear interpolation. Replaced by Resize.",
    .inputs = {{"X", kAnyType}, {"scales", {DType::kF32}}},
    .outputs = {{"Y"}},
    .attrs = {{"mode", "nearest", "nearest or linear"}},
    .infer = Infer,
    .eval = Eval,
    .upgrade = Upgrade,
    .gradient = ReplacementGradient,
    .fixed_inputs = 0b10,
    .gradient_body = GradientBody,
    .until = 9,
    .examples = {"(T[1,2,3,4], float32[4]<1,1,2,3>)"},
};

}  // namespace mge::op_upsample
