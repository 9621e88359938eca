// SPDX-License-Identifier: Apache-2.0
#include "core/ops/families/resize.h"

#include <cmath>
#include <optional>

#include "core/ops/gradient.h"
#include "core/ops/op_helpers.h"
#include "fmt/format.h"

namespace mge::op_resize {
namespace {

enum Input { kX, kRoi, kScales, kSizes };

// Operator set 10 had only the inputs X and scales. Its nearest element is that above where the tensor becomes smaller.
absl::Status Upgrade(Graph&, Node& node) {
  if (node.version >= 11) {
    if (node.attrs.Text("nearest_mode") != kFloorOrCeil) return absl::OkStatus();
    return BadNode(
        "attribute nearest_mode = \"floor_or_ceil\" is not one of round_prefer_floor, round_prefer_ceil, floor, ceil");
  }
  node.inputs.insert(node.inputs.begin() + std::min<size_t>(1, node.inputs.size()), kNone);
  node.attrs.Set("coordinate_transformation_mode", std::string("asymmetric"));
  node.attrs.Set("nearest_mode", std::string(kFloorOrCeil));
  return absl::OkStatus();
}

// Returns the dimensions to which roi, scales and sizes refer, in their order.
absl::StatusOr<Ints> ReadAxes(const Attributes& attrs, int64_t rank) {
  Ints axes = attrs.IntList("axes");
  if (axes.empty()) {
    for (int64_t i = 0; i < rank; ++i) axes.push_back(i);
    return axes;
  }
  std::vector<bool> seen(rank, false);
  for (int64_t& axis : axes) {
    MGE_ASSIGN_OR_RETURN(axis, NormalizeAxis(axis, rank));
    if (seen[axis]) return BadNode(fmt::format("attribute axes names axis {} twice", axis));
    seen[axis] = true;
  }
  return axes;
}

absl::StatusOr<std::vector<double>> FloatValues(const Tensor& tensor) {
  std::vector<double> values;
  DispatchFloating(tensor.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    for (T v : tensor.Data<T>()) values.push_back(static_cast<Compute<T>>(v));
  });
  return values;
}

absl::Status CheckCount(std::string_view name, size_t count, size_t wanted) {
  return RequireSize(fmt::format("the number of values in {}", name), static_cast<int64_t>(count),
                     static_cast<int64_t>(wanted));
}

absl::Status FromScales(const Tensor& scales, const Ints& axes, std::vector<ResizeAxis>& result) {
  std::span<const float> values = scales.Data<float>();
  MGE_RETURN_IF_ERROR(CheckCount("scales", values.size(), axes.size()));
  for (size_t i = 0; i < axes.size(); ++i) {
    ResizeAxis& axis = result[axes[i]];
    MGE_ASSIGN_OR_RETURN(axis.out, ScaledSize(axis.in, values[i]));
    axis.scale = values[i];
  }
  return absl::OkStatus();
}

absl::StatusOr<int> ReadPolicy(const Attributes& attrs) {
  return ReadChoice(attrs, "keep_aspect_ratio_policy", {"stretch", "not_larger", "not_smaller"});
}

absl::Status FromSizes(const Attributes& attrs, const Tensor& sizes, const Ints& axes, std::vector<ResizeAxis>& result) {
  std::span<const int64_t> values = sizes.Data<int64_t>();
  MGE_ASSIGN_OR_RETURN(int policy, ReadPolicy(attrs));
  MGE_RETURN_IF_ERROR(CheckCount("sizes", values.size(), axes.size()));
  std::optional<double> common;
  bool known = true;
  for (size_t i = 0; i < axes.size(); ++i) {
    ResizeAxis& axis = result[axes[i]];
    if (values[i] < 0 || values[i] > (int64_t{1} << 62)) {
      return BadNode(fmt::format("sizes[{}] = {} is outside of 0..2^62", i, values[i]));
    }
    axis.out = values[i];
    known = known && axis.in != kUnknownDim;
    axis.scale = axis.in == axis.out || axis.in <= 0 ? 1 : static_cast<double>(axis.out) / static_cast<double>(axis.in);
    if (!common) common = axis.scale;
    common = policy == 1 ? std::min(*common, axis.scale) : std::max(*common, axis.scale);
  }
  if (policy == 0 || !common) return absl::OkStatus();
  for (int64_t d : axes) {
    ResizeAxis& axis = result[d];
    axis.scale = *common;
    const double size = std::floor(static_cast<double>(axis.in) * *common + 0.5);
    if (known && !(size < 0x1p62)) return BadNode(fmt::format("size {} times scale {} is too large", axis.in, *common));
    axis.out = known ? static_cast<int64_t>(size) : kUnknownDim;
  }
  return absl::OkStatus();
}

bool Given(/*nullable*/ const Tensor* tensor) { return tensor && tensor->elements() > 0; }

// Resolves all axes. `scales` and `sizes` are null or empty if absent. Exactly one must be given.
absl::StatusOr<std::vector<ResizeAxis>> Resolve(const Attributes& attrs, std::span<const int64_t> x, const Tensor* scales,
                                                const Tensor* sizes) {
  MGE_ASSIGN_OR_RETURN(Ints axes, ReadAxes(attrs, static_cast<int64_t>(x.size())));
  std::vector<ResizeAxis> result(x.size());
  for (size_t i = 0; i < x.size(); ++i) result[i].in = result[i].out = x[i];
  if (Given(scales) && Given(sizes)) return BadNode("both scales and sizes are given; give only one");
  if (Given(scales)) {
    MGE_RETURN_IF_ERROR(FromScales(*scales, axes, result));
  } else if (Given(sizes)) {
    MGE_RETURN_IF_ERROR(FromSizes(attrs, *sizes, axes, result));
  } else if (!x.empty()) {
    return BadNode("neither scales nor sizes is given; give one");
  }
  MGE_RETURN_IF_ERROR(CheckResizeAxes(result));
  return result;
}

absl::Status Infer(InferContext& ctx) {
  MGE_RETURN_IF_ERROR(ReadResizeOptions(ctx.attrs()).status());
  MGE_RETURN_IF_ERROR(ReadPolicy(ctx.attrs()).status());
  const TensorType& x = ctx.input(kX);
  if (!x.has_rank) {
    ctx.SetOutput(0, UnrankedType(x.dtype));
    return absl::OkStatus();
  }
  auto constant = [&](int i) { return ctx.has_input(i) ? ctx.constant(i) : nullptr; };
  if ((ctx.has_input(kScales) && !constant(kScales)) || (ctx.has_input(kSizes) && !constant(kSizes))) {
    MGE_ASSIGN_OR_RETURN(Ints axes, ReadAxes(ctx.attrs(), static_cast<int64_t>(x.dims.size())));
    Shape dims = x.dims;
    for (int64_t axis : axes) dims[axis] = kUnknownDim;
    ctx.SetOutput(0, MakeType(x.dtype, std::move(dims)));
    return absl::OkStatus();
  }
  MGE_ASSIGN_OR_RETURN(std::vector<ResizeAxis> axes, Resolve(ctx.attrs(), x.dims, constant(kScales), constant(kSizes)));
  Shape dims;
  for (const ResizeAxis& axis : axes) dims.push_back(axis.out);
  ctx.SetOutput(0, MakeType(x.dtype, std::move(dims)));
  return absl::OkStatus();
}

absl::Status ReadRegion(EvalContext& ctx, std::vector<ResizeAxis>& axes) {
  if (!ctx.has_input(kRoi) || ctx.input(kRoi).elements() == 0) {
    return ctx.Invalid("coordinate_transformation_mode tf_crop_and_resize requires input roi");
  }
  MGE_ASSIGN_OR_RETURN(Ints named, ReadAxes(ctx.attrs(), static_cast<int64_t>(axes.size())));
  MGE_ASSIGN_OR_RETURN(std::vector<double> roi, FloatValues(ctx.input(kRoi)));
  MGE_RETURN_IF_ERROR(CheckCount("roi", roi.size(), 2 * named.size()));
  for (size_t i = 0; i < named.size(); ++i) {
    axes[named[i]].roi_begin = roi[i];
    axes[named[i]].roi_end = roi[i + named.size()];
  }
  return absl::OkStatus();
}

absl::Status Eval(EvalContext& ctx) {
  MGE_ASSIGN_OR_RETURN(ResizeOptions options, ReadResizeOptions(ctx.attrs()));
  auto given = [&](int i) { return ctx.has_input(i) ? &ctx.input(i) : nullptr; };
  MGE_ASSIGN_OR_RETURN(std::vector<ResizeAxis> axes,
                       Resolve(ctx.attrs(), ctx.input(kX).shape(), given(kScales), given(kSizes)));
  if (options.coordinates == ResizeOptions::Coordinates::kTfCropAndResize) MGE_RETURN_IF_ERROR(ReadRegion(ctx, axes));
  return EvalResize(ctx, options, axes);
}

absl::StatusOr<bool> GradientBody(FunctionBody& f) {
  if (!f.IsStatic() || (f.has_input(kScales) && !f.constant(kScales)) || (f.has_input(kSizes) && !f.constant(kSizes))) {
    return false;
  }
  MGE_ASSIGN_OR_RETURN(const ResizeOptions options, ReadResizeOptions(f.attrs()));
  const auto given = [&](int i) { return f.has_input(i) ? f.constant(i) : nullptr; };
  MGE_ASSIGN_OR_RETURN(const std::vector<ResizeAxis> axes, Resolve(f.attrs(), f.dims(kX), given(kScales), given(kSizes)));
  MGE_RETURN_IF_ERROR(AddResize(f, options, axes));
  return true;
}

}  // namespace

MGE_OP(resize) = {
    .name = "Resize",
    .doc = "Resamples along axes by nearest, linear or cubic interpolation.",
    .inputs = {{"X", kAnyType},
               {"roi", {DType::kF32, DType::kF64, DType::kF16, DType::kBF16}, Arity::kOptional},
               {"scales", {DType::kF32}, Arity::kOptional},
               {"sizes", {DType::kI64}, Arity::kOptional}},
    .outputs = {{"Y"}},
    .attrs = {{"antialias", 0, "not 0: smooths when it shrinks"},
              AxisOf({"axes", AttrType::kInts, Presence::kOptional, "the axes of sizes and scales; absent: all"}),
              {"coordinate_transformation_mode", "half_pixel", "how an output's place becomes an input's"},
              {"cubic_coeff_a", -0.75f, "the coefficient of cubic interpolation"},
              {"exclude_outside", 0, "not 0: places outside of the input have no weight"},
              {"extrapolation_value", 0.0f, "the result outside of the input"},
              {"keep_aspect_ratio_policy", "stretch", "stretch, not_larger or not_smaller"},
              {"mode", "nearest", "nearest, linear or cubic"},
              {"nearest_mode", "round_prefer_floor", "how a place is rounded"}},
    .infer = Infer,
    .eval = Eval,
    .upgrade = Upgrade,
    .gradient = ReplacementGradient,
    .fixed_inputs = 0b110,
    .gradient_body = GradientBody,
    .since = 10,
    .examples = {"(T[1,2,3,4], _, float32[4]<1,1,2,2>)", "(T[1,2,5,7], _, _, int64[4]<1,2,9,4>) {mode=\"linear\"}",
                 "(T[1,8,33,31], _, float32[4]<1,1,2,2>)", "(T[1,8,33,31], _, float32[4]<1,1,2,2>) {mode=\"linear\"}",
                 "(T[1,1,4,4], _, float32[4]<1,1,1.5,0.5>) {mode=\"cubic\"}",
                 "(T[1,2,6,5], _, _, int64[2]<3,7>) {mode=\"linear\", axes=[2,3], antialias=1}",
                 "(T[1,2,3,4,3], _, _, int64[5]<1,2,4,2,3>) {mode=\"linear\", "
                 "coordinate_transformation_mode=\"align_corners\"}",
                 "(T[1,2,5,4], _, float32[4]<1,1,1.5,0.5>)"},
};

}  // namespace mge::op_resize
