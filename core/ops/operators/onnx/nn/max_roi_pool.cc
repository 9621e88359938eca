// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <limits>

#include "core/ops/infer_checks.h"
#include "fmt/format.h"

namespace mge::op_max_roi_pool {
namespace {

absl::StatusOr<Shape> OutputShape(const Attributes& attrs, std::span<const int64_t> x, std::span<const int64_t> rois) {
  MGE_RETURN_IF_ERROR(RequireRank("the input", x, 4));
  MGE_RETURN_IF_ERROR(RequireRank("the tensor of regions", rois, 2));
  MGE_RETURN_IF_ERROR(RequireSize("the second dimension of the regions", rois[1], 5));
  Ints pooled = attrs.IntList("pooled_shape");
  if (pooled.size() != 2 || pooled[0] < 1 || pooled[1] < 1) {
    return Fail(errors::kInvalidNode, "attribute pooled_shape must hold two positive sizes");
  }
  return Shape{rois[0], x[1], pooled[0], pooled[1]};
}

absl::Status Infer(InferContext& ctx) {
  MGE_RETURN_IF_ERROR(SameElementTypes(ctx, {0, 1}));
  const TensorType& x = ctx.input(0);
  const TensorType& rois = ctx.input(1);
  if (!x.has_rank || !rois.has_rank) {
    ctx.SetOutput(0, UnrankedType(x.dtype));
    return absl::OkStatus();
  }
  MGE_ASSIGN_OR_RETURN(Shape shape, OutputShape(ctx.attrs(), x.dims, rois.dims));
  ctx.SetOutput(0, MakeType(x.dtype, std::move(shape)));
  return absl::OkStatus();
}

// The range [begin, end) of bin `i` out of `bins` along an axis of `size`. `start` and `stop` are the region's rounded
// borders.
struct Bin {
  int64_t begin, end;
};
Bin BinOf(double start, double stop, int64_t i, int64_t bins, int64_t size) {
  const double step = std::max(stop - start + 1, 1.0) / static_cast<double>(bins);
  const double limit = static_cast<double>(size);
  const double begin = std::floor(static_cast<double>(i) * step) + start;
  const double end = std::ceil(static_cast<double>(i + 1) * step) + start;
  return {static_cast<int64_t>(std::clamp(begin, 0.0, limit)), static_cast<int64_t>(std::clamp(end, 0.0, limit))};
}

template <typename T>
absl::Status Pool(EvalContext& ctx, const Tensor& x, const Tensor& rois, Tensor& y) {
  const double scale = ctx.attrs().Float("spatial_scale");
  const int64_t channels = x.shape()[1], height = x.shape()[2], width = x.shape()[3];
  const int64_t rows = y.shape()[2], columns = y.shape()[3];
  std::span<const T> region = rois.Data<T>();
  T* out = y.MutableData<T>().data();
  for (int64_t r = 0; r < y.shape()[0]; ++r, region = region.subspan(5)) {
    MGE_RETURN_IF_ERROR(ctx.CheckStop());
    const double batch = static_cast<Compute<T>>(region[0]);
    if (!(batch >= 0 && batch < static_cast<double>(x.shape()[0]))) {
      return Fail(errors::kIndexOutOfRange,
                  fmt::format("region {} belongs to image {}, but the batch has {}", r, batch, x.shape()[0]));
    }
    double border[4];
    for (int i = 0; i < 4; ++i) {
      border[i] = std::round(static_cast<double>(static_cast<Compute<T>>(region[i + 1])) * scale);
      if (!std::isfinite(border[i])) return ctx.Invalid(fmt::format("region {} has a border that is not finite", r));
    }
    for (int64_t c = 0; c < channels; ++c) {
      const T* plane = x.Data<T>().data() + (static_cast<int64_t>(batch) * channels + c) * height * width;
      for (int64_t i = 0; i < rows; ++i) {
        const Bin h = BinOf(border[1], border[3], i, rows, height);
        for (int64_t j = 0; j < columns; ++j) {
          const Bin w = BinOf(border[0], border[2], j, columns, width);
          const bool empty = h.end <= h.begin || w.end <= w.begin;
          Compute<T> best = empty ? 0 : -std::numeric_limits<Compute<T>>::infinity();
          for (int64_t row = h.begin; row < h.end; ++row) {
            for (int64_t column = w.begin; column < w.end; ++column) {
              best = std::max<Compute<T>>(best, plane[row * width + column]);
            }
          }
          *out++ = static_cast<T>(best);
        }
      }
    }
  }
  return absl::OkStatus();
}

absl::Status Eval(EvalContext& ctx) {
  const Tensor& x = ctx.input(0);
  MGE_ASSIGN_OR_RETURN(Shape shape, OutputShape(ctx.attrs(), x.shape(), ctx.input(1).shape()));
  MGE_ASSIGN_OR_RETURN(Tensor * y, ctx.Output(0, x.dtype(), std::move(shape)));
  if (y->elements() == 0) return absl::OkStatus();
  absl::Status status;
  bool known =
      DispatchFloating(x.dtype(), [&](auto tag) { status = Pool<typename decltype(tag)::type>(ctx, x, ctx.input(1), *y); });
  return known ? status : ctx.Unsupported(std::string(DTypeName(x.dtype())));
}

}  // namespace

MGE_OP(max_roi_pool) = {
    .name = "MaxRoiPool",
    .doc =
        "Divides every region [image, x1, y1, x2, y2] into bins and returns the largest element of "
        "each.",
    .inputs = {{"X", kFloating}, {"rois", kFloating}},
    .outputs = {{"Y"}},
    .attrs = {{"pooled_shape", AttrType::kInts, Presence::kRequired, "rows and columns of the result"},
              {"spatial_scale", 1.0f, "the factor from the boxes to the input"}},
    .infer = Infer,
    .eval = Eval,
    .examples = {"(T[1,2,6,6], T[2,5]<0,0,0,3,3,0,1,1,5,5>) {pooled_shape=[2,2]}"},
};

}  // namespace mge::op_max_roi_pool
