// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <vector>

#include "core/ops/infer_checks.h"
#include "fmt/format.h"

namespace mge::op_roi_align {
namespace {

// The maximum number of grid points per bin. A larger region is a mistake and would take too long.
constexpr double kMaxGrid = 1 << 20;

struct Options {
  bool average = true;
  bool half_pixel = true;
  int64_t rows = 1, columns = 1;
  int64_t sampling_ratio = 0;
  double scale = 1;
};

// Before operator set 16 there was no half-pixel shift.
absl::Status Upgrade(Graph&, Node& node) {
  if (node.version < 16) node.attrs.Set("coordinate_transformation_mode", std::string("output_half_pixel"));
  return absl::OkStatus();
}

absl::StatusOr<Options> ReadOptions(const Attributes& attrs) {
  Options o;
  MGE_ASSIGN_OR_RETURN(int mode, ReadChoice(attrs, "mode", {"avg", "max"}));
  MGE_ASSIGN_OR_RETURN(int shift, ReadChoice(attrs, "coordinate_transformation_mode", {"half_pixel", "output_half_pixel"}));
  o.average = mode == 0;
  o.half_pixel = shift == 0;
  o.rows = attrs.Int("output_height");
  o.columns = attrs.Int("output_width");
  o.sampling_ratio = attrs.Int("sampling_ratio");
  o.scale = attrs.Float("spatial_scale");
  if (o.rows < 1 || o.columns < 1) {
    return Fail(errors::kInvalidNode,
                fmt::format("output_height = {} and output_width = {} must be at least 1", o.rows, o.columns));
  }
  if (o.sampling_ratio < 0 || o.sampling_ratio > 1024) {
    return Fail(errors::kInvalidNode, fmt::format("attribute sampling_ratio = {} is outside of 0..1024", o.sampling_ratio));
  }
  return o;
}

absl::StatusOr<Shape> OutputShape(const Options& o, std::span<const int64_t> x, std::span<const int64_t> rois,
                                  std::span<const int64_t> images) {
  MGE_RETURN_IF_ERROR(RequireRank("the input", x, 4));
  MGE_RETURN_IF_ERROR(RequireShape("the tensor of regions", rois, Shape{kUnknownDim, 4}));
  MGE_RETURN_IF_ERROR(RequireShape("batch_indices", images, Shape{rois[0]}));
  return Shape{rois[0] == kUnknownDim ? images[0] : rois[0], x[1], o.rows, o.columns};
}

absl::Status Infer(InferContext& ctx) {
  MGE_RETURN_IF_ERROR(SameElementTypes(ctx, {0, 1}));
  MGE_ASSIGN_OR_RETURN(Options o, ReadOptions(ctx.attrs()));
  const TensorType& x = ctx.input(0);
  if (!x.has_rank || !ctx.input(1).has_rank || !ctx.input(2).has_rank) {
    ctx.SetOutput(0, UnrankedType(x.dtype));
    return absl::OkStatus();
  }
  MGE_ASSIGN_OR_RETURN(Shape shape, OutputShape(o, x.dims, ctx.input(1).dims, ctx.input(2).dims));
  ctx.SetOutput(0, MakeType(x.dtype, std::move(shape)));
  return absl::OkStatus();
}

// The two neighbours of a coordinate and their weights. Both weights are 0 outside of the plane.
struct Neighbours {
  int64_t low = 0, high = 0;
  double low_weight = 0, high_weight = 0;
};

Neighbours Find(double at, int64_t size) {
  if (!(at >= -1.0 && at <= static_cast<double>(size))) return {};
  at = std::max(at, 0.0);
  const int64_t low = static_cast<int64_t>(at);
  if (low >= size - 1) return {size - 1, size - 1, 1, 0};
  const double rest = at - static_cast<double>(low);
  return {low, low + 1, 1 - rest, rest};
}

// The samples along one axis of a region: the neighbours of all sample points, bin by bin.
struct Samples {
  int64_t grid = 0;  // points per bin
  std::vector<Neighbours> points;
};

absl::StatusOr<Samples> Sample(const Options& o, double begin, double end, int64_t bins, int64_t size) {
  const double offset = o.half_pixel ? 0.5 : 0.0;
  begin = begin * o.scale - offset;
  double extent = end * o.scale - offset - begin;
  if (!o.half_pixel) extent = std::max(extent, 1.0);
  const double bin = extent / static_cast<double>(bins);
  const double grid = o.sampling_ratio > 0 ? static_cast<double>(o.sampling_ratio) : std::ceil(bin);
  if (!(grid * static_cast<double>(bins) <= kMaxGrid)) {
    return Fail(errors::kInvalidNode,
                fmt::format("a region from {} to {} requires more than {} sample points", begin, begin + extent, kMaxGrid));
  }
  Samples samples;
  samples.grid = std::max<int64_t>(static_cast<int64_t>(grid), 0);
  for (int64_t i = 0; i < bins; ++i) {
    for (int64_t g = 0; g < samples.grid; ++g) {
      samples.points.push_back(Find(
          begin + static_cast<double>(i) * bin + (static_cast<double>(g) + 0.5) * bin / static_cast<double>(samples.grid),
          size));
    }
  }
  return samples;
}

template <typename T>
double PoolBin(const T* plane, int64_t width, std::span<const Neighbours> ys, std::span<const Neighbours> xs, bool average) {
  double sum = 0, best = 0;
  bool first = true;
  for (const Neighbours& y : ys) {
    for (const Neighbours& x : xs) {
      auto at = [&](int64_t row, int64_t column) { return static_cast<double>(plane[row * width + column]); };
      const double a = y.low_weight * x.low_weight * at(y.low, x.low);
      const double b = y.low_weight * x.high_weight * at(y.low, x.high);
      const double c = y.high_weight * x.low_weight * at(y.high, x.low);
      const double d = y.high_weight * x.high_weight * at(y.high, x.high);
      sum += a + b + c + d;
      // ONNX defines the maximum over the weighted neighbours, not over their sum.
      const double largest = std::max({a, b, c, d});
      best = first ? largest : std::max(best, largest);
      first = false;
    }
  }
  return average ? sum / static_cast<double>(std::max<size_t>(ys.size() * xs.size(), 1)) : best;
}

template <typename T>
absl::Status Align(EvalContext& ctx, const Options& o, const Tensor& x, std::span<const T> rois,
                   std::span<const int64_t> images, T* out) {
  const int64_t batch = x.shape()[0], channels = x.shape()[1], height = x.shape()[2], width = x.shape()[3];
  for (size_t r = 0; r < images.size(); ++r) {
    MGE_RETURN_IF_ERROR(ctx.CheckStop());
    if (images[r] < 0 || images[r] >= batch) {
      return Fail(errors::kIndexOutOfRange,
                  fmt::format("batch_indices[{}] = {} is outside of the batch of {}", r, images[r], batch));
    }
    auto border = [&](size_t i) { return static_cast<double>(rois[r * 4 + i]); };
    MGE_ASSIGN_OR_RETURN(Samples xs, Sample(o, border(0), border(2), o.columns, width));
    MGE_ASSIGN_OR_RETURN(Samples ys, Sample(o, border(1), border(3), o.rows, height));
    for (int64_t c = 0; c < channels; ++c) {
      const T* plane = x.Data<T>().data() + (images[r] * channels + c) * height * width;
      for (int64_t i = 0; i < o.rows; ++i) {
        for (int64_t j = 0; j < o.columns; ++j) {
          *out++ = static_cast<T>(
              static_cast<Compute<T>>(PoolBin(plane, width, std::span(ys.points).subspan(i * ys.grid, ys.grid),
                                              std::span(xs.points).subspan(j * xs.grid, xs.grid), o.average)));
        }
      }
    }
  }
  return absl::OkStatus();
}

absl::Status Eval(EvalContext& ctx) {
  const Tensor& x = ctx.input(0);
  const Tensor& rois = ctx.input(1);
  const Tensor& images = ctx.input(2);
  MGE_ASSIGN_OR_RETURN(Options o, ReadOptions(ctx.attrs()));
  MGE_ASSIGN_OR_RETURN(Shape shape, OutputShape(o, x.shape(), rois.shape(), images.shape()));
  MGE_ASSIGN_OR_RETURN(Tensor * y, ctx.Output(0, x.dtype(), std::move(shape)));
  if (y->elements() == 0) return absl::OkStatus();
  if (x.elements() == 0) return ctx.Invalid("there is nothing to pool in an input of shape " + ShapeText(x.shape()));
  absl::Status status;
  bool known = DispatchFloating(x.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    status = Align<T>(ctx, o, x, rois.Data<T>(), images.Data<int64_t>(), y->MutableData<T>().data());
  });
  return known ? status : ctx.Unsupported(std::string(DTypeName(x.dtype())));
}

}  // namespace

MGE_OP(roi_align) = {
    .name = "RoiAlign",
    .doc =
        "Samples every region [x1, y1, x2, y2] on a grid by bilinear interpolation and pools the "
        "samples of each bin.",
    .inputs = {{"X", kFloating}, {"rois", kFloating}, {"batch_indices", {DType::kI64}}},
    .outputs = {{"Y"}},
    .attrs = {{"coordinate_transformation_mode", "half_pixel", "how an output's place becomes an input's"},
              {"mode", "avg", "avg or max"},
              {"output_height", 1, "rows of the result"},
              {"output_width", 1, "columns of the result"},
              {"sampling_ratio", 0, "samples per bin and axis; 0: as many as fit"},
              {"spatial_scale", 1.0f, "the factor from the boxes to the input"}},
    .infer = Infer,
    .eval = Eval,
    .upgrade = Upgrade,
    .since = 10,
    .examples = {"(T[1,2,6,6], T[2,4]<0,0,3,3,1,1,5,5>, int64[2]<0,0>) {output_height=2, output_width=2}"},
};

}  // namespace mge::op_roi_align
