// SPDX-License-Identifier: Apache-2.0
#include <vector>

#include "core/ops/function_body.h"
#include "core/ops/gradient.h"
#include "core/ops/infer_checks.h"
#include "core/ops/op_helpers.h"

namespace mge::op_affine_grid {
namespace {

// Returns the shape of the grid: [N, spatial sizes..., axes]. theta is [N, axes, axes + 1]. size holds N, C and the
// spatial sizes.
absl::StatusOr<Shape> OutputShape(std::span<const int64_t> theta, std::span<const int64_t> size) {
  if (size.size() != 4 && size.size() != 5) {
    return Fail(errors::kInvalidNode, fmt::format("input 'size' has {} values; it must have 4 or 5", size.size()));
  }
  const int64_t axes = static_cast<int64_t>(size.size()) - 2;
  MGE_RETURN_IF_ERROR(RequireShape("theta", theta, Shape{size[0], axes, axes + 1}));
  Shape shape = {size[0]};
  for (size_t i = 2; i < size.size(); ++i) {
    if (size[i] < 0) return Fail(errors::kInvalidNode, fmt::format("size[{}] = {} is negative", i, size[i]));
    shape.push_back(size[i]);
  }
  shape.push_back(axes);
  return shape;
}

absl::Status Infer(InferContext& ctx) {
  const TensorType& theta = ctx.input(0);
  TensorType grid = UnrankedType(theta.dtype);
  if (const Tensor* size = ctx.constant(1)) {
    const std::vector<int64_t> values = size->ToInts();
    MGE_ASSIGN_OR_RETURN(Shape shape, OutputShape(theta.has_rank ? std::span<const int64_t>(theta.dims)
                                                                 : Shape{kUnknownDim, kUnknownDim, kUnknownDim},
                                                  values));
    grid = MakeType(theta.dtype, std::move(shape));
  } else if (theta.has_rank) {
    MGE_RETURN_IF_ERROR(RequireRank("theta", theta.dims, 3));
    if (theta.dims[1] == 2 || theta.dims[1] == 3) {
      grid = MakeType(theta.dtype, Shape(theta.dims[1] + 2, kUnknownDim));
      grid.dims.front() = theta.dims[0];
      grid.dims.back() = theta.dims[1];
    }
  }
  ctx.SetOutput(0, std::move(grid));
  return absl::OkStatus();
}

// Returns the coordinate in [-1, 1] of element i of n: its middle, or with `align_corners` -1 for the first element and
// 1 for the last.
double Coordinate(int64_t i, int64_t n, bool align_corners) {
  const double at = static_cast<double>(i), size = static_cast<double>(n);
  if (align_corners) return n > 1 ? 2 * at / (size - 1) - 1 : 0;
  return (2 * at + 1) / size - 1;
}

absl::Status Eval(EvalContext& ctx) {
  const Tensor& theta = ctx.input(0);
  MGE_ASSIGN_OR_RETURN(Shape shape, OutputShape(theta.shape(), ctx.input(1).ToInts()));
  MGE_ASSIGN_OR_RETURN(Tensor * grid, ctx.Output(0, theta.dtype(), shape));
  if (grid->elements() == 0) return absl::OkStatus();
  const bool align_corners = ctx.attrs().Int("align_corners") != 0;
  const int64_t axes = shape.back();
  bool known = DispatchFloating(theta.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    const Shape points(shape.begin(), shape.end() - 1);
    Shape index(points.size(), 0);
    T* out = grid->MutableData<T>().data();
    do {
      const T* matrix = theta.Data<T>().data() + index[0] * axes * (axes + 1);
      for (int64_t row = 0; row < axes; ++row, matrix += axes + 1) {
        double sum = static_cast<Compute<T>>(matrix[axes]);
        for (int64_t d = 0; d < axes; ++d) {  // x, the innermost axis, is first
          sum += static_cast<Compute<T>>(matrix[d]) * Coordinate(index[axes - d], points[axes - d], align_corners);
        }
        *out++ = static_cast<T>(static_cast<Compute<T>>(sum));
      }
    } while (NextIndex(points, std::span<int64_t>(index.data(), index.size())));
  });
  return known ? absl::OkStatus() : ctx.Unsupported(std::string(DTypeName(theta.dtype())));
}

// Multiplies the coordinates of all points, each with a 1, by the transposed maps.
absl::StatusOr<bool> GradientBody(FunctionBody& f) {
  if (!f.IsStatic() || !f.constant(1)) return false;
  MGE_ASSIGN_OR_RETURN(const Shape shape, OutputShape(f.dims(0), f.constant(1)->ToInts()));
  const bool align_corners = f.attrs().Int("align_corners") != 0;
  const Shape image(shape.begin() + 1, shape.end() - 1);
  if (Elements(image) == 0) return f.Unsupported("the gradient of an empty grid");
  const int64_t axes = shape.back();
  Shape index(image.size(), 0);
  std::vector<double> rows;
  do {
    for (int64_t d = axes; d-- > 0;) {
      const auto axis = static_cast<size_t>(d);
      rows.push_back(Coordinate(index[axis], image[axis], align_corners));
    }
    rows.push_back(1);
  } while (NextIndex(image, std::span<int64_t>(index.data(), index.size())));
  const ValueId points = f.Constant(Tensor::Of<double>({Elements(image), axes + 1}, rows));
  const ValueId products = f.Add("MatMul", {f.Cast(points, DType::kF64, f.dtype(0)), f.Transpose(f.input(0), {0, 2, 1})});
  f.ReshapeTo(f.output(0), products, shape);
  return true;
}

}  // namespace

MGE_OP(affine_grid) = {
    .name = "AffineGrid",
    .doc =
        "The grid of coordinates that an affine map of the output's places makes; GridSample reads "
        "it.",
    .inputs = {{"theta", kFloating}, {"size", {DType::kI64}}},
    .outputs = {{"grid"}},
    .attrs = {{"align_corners", 0, "not 0: -1 and 1 are the centers of the corners, else their edges"}},
    .infer = Infer,
    .eval = Eval,
    .gradient = ReplacementGradient,
    .gradient_body = GradientBody,
    .since = 20,
    .examples = {"(T[1,2,3], int64[4]<1,2,3,5>)", "(T[2,3,4], int64[5]<2,1,2,3,1>) {align_corners=1}"},
};

}  // namespace mge::op_affine_grid
