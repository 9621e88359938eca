// SPDX-License-Identifier: Apache-2.0
#include <numeric>
#include <vector>

#include "core/ops/families/movement.h"
#include "core/ops/function_body.h"
#include "core/ops/gradient.h"
#include "core/ops/op_helpers.h"

namespace mge::op_gather_nd {
namespace {

// Returns the output's shape; unknown sizes are -1.
absl::StatusOr<Shape> Gathered(std::span<const int64_t> x, std::span<const int64_t> indices, int64_t batch) {
  int64_t r = static_cast<int64_t>(x.size()), q = static_cast<int64_t>(indices.size());
  if (r < 1 || q < 1) return BadNode("data and indices must have at least one dimension");
  if (batch < 0 || batch >= std::min(r, q)) {
    return BadNode(fmt::format("batch_dims {} is outside of [0, {})", batch, std::min(r, q)));
  }
  for (int64_t d = 0; d < batch; ++d) {
    int64_t dim = x[d];
    if (!MergeDim(&dim, indices[d])) {
      return BadNode(fmt::format("batch dimension {} is {} in the data and {} in the indices", d, x[d], indices[d]));
    }
  }
  int64_t depth = indices.back();
  if (depth != kUnknownDim && (depth < 1 || depth > r - batch)) {
    return BadNode(
        fmt::format("indices have {} coordinates; data of shape {} allows 1 to {} after {} batch "
                    "dimensions",
                    depth, ShapeText(x), r - batch, batch));
  }
  Shape out(indices.begin(), indices.end() - 1);
  if (depth != kUnknownDim) out.insert(out.end(), x.begin() + batch + depth, x.end());
  return out;
}

absl::Status Infer(InferContext& ctx) {
  const TensorType& x = ctx.input(0);
  const TensorType& indices = ctx.input(1);
  TensorType out = UnrankedType(x.dtype);
  if (x.has_rank && indices.has_rank) {
    MGE_ASSIGN_OR_RETURN(Shape dims, Gathered(x.dims, indices.dims, ctx.attrs().Int("batch_dims")));
    if (indices.dims.back() != kUnknownDim) out = MakeType(x.dtype, std::move(dims));
  }
  ctx.SetOutput(0, std::move(out));
  return absl::OkStatus();
}

absl::Status Eval(EvalContext& ctx) {
  const Tensor& x = ctx.input(0);
  const Tensor& indices = ctx.input(1);
  const int64_t batch = ctx.attrs().Int("batch_dims");
  MGE_ASSIGN_OR_RETURN(Shape shape, Gathered(x.shape(), indices.shape(), batch));
  MGE_ASSIGN_OR_RETURN(Tensor * y, ctx.Output(0, x.dtype(), std::move(shape)));
  if (indices.elements() == 0) return absl::OkStatus();
  const int64_t depth = indices.shape().back();
  const int64_t count = indices.elements() / depth;
  const int64_t per_batch = Product(indices.shape(), batch, indices.rank() - 1);
  const int64_t block = Product(x.shape(), batch + depth, x.rank());
  Shape strides = Strides(x.shape());
  const int64_t batch_stride = batch ? strides[batch - 1] : 0;
  IndexView index(indices);
  for (int64_t i = 0; i < count; ++i) {
    int64_t from = i / per_batch * batch_stride;
    for (int64_t d = 0; d < depth; ++d) {
      int64_t j = index[i * depth + d];
      MGE_RETURN_IF_ERROR(CheckIndex(ctx, "index", x.shape()[batch + d], &j));
      from += j * strides[batch + d];
    }
    CopyElements(x, from, *y, i * block, block);
  }
  return absl::OkStatus();
}

absl::Status Gradient(GradientContext& g) {
  if (g.attrs().Int("batch_dims") != 0) return g.SetByReplacement();
  return g.Set(0, g.Of("ScatterND", {g.Fill(0, g.x()).id(), g.x(1).id(), g.dy().id()},
                       OneAttribute("reduction", std::string("add"))));
}

// Adds the coordinates of the batch in front of the indices.
absl::StatusOr<bool> GradientBody(FunctionBody& f) {
  const auto batch = static_cast<size_t>(f.attrs().Int("batch_dims"));
  if (batch == 0 || !f.IsStatic()) return false;
  Shape dims = f.dims(1);
  std::vector<ValueId> coordinates;
  for (size_t d = 0; d < batch; ++d) {
    Shape one(dims.size(), 1), all = dims;
    one[d] = dims[d];
    all.back() = 1;
    std::vector<int64_t> numbers(static_cast<size_t>(dims[d]));
    std::iota(numbers.begin(), numbers.end(), int64_t{0});
    const ValueId places = f.Constant(Tensor::Of<int64_t>(one, numbers));
    coordinates.push_back(f.Add("Expand", {places, f.Integers(all)}));
  }
  coordinates.push_back(f.input(1));
  const ValueId indices = f.Add("Concat", coordinates, IntAttribute("axis", -1));
  f.Result(0, "GatherND", {f.input(0), indices});
  return true;
}

}  // namespace

MGE_OP(gather_nd) = {.name = "GatherND",
                     .doc = "Slices of the data, selected by vectors of coordinates.",
                     .inputs = {{"data"}, {"indices", {DType::kI64}}},
                     .outputs = {{"output"}},
                     .attrs = {{"batch_dims", 0, "the number of leading dimensions that data and indices share"}},
                     .infer = Infer,
                     .eval = Eval,
                     .gradient = Gradient,
                     .gradient_body = GradientBody,
                     .since = 11,
                     .examples = {"(T[3,4,5], int64[2,2]<0,3,2,1>)", "(T[2,3,4], int64[2,3,1]<0,3,2,1,-1,1>) {batch_dims=1}",
                                  "(T[2,3,4,2], int64[2,3,2]<0,1,2,0,1,-1,3,0,2,1,3,1>) {batch_dims=2}"}};

}  // namespace mge::op_gather_nd
