// SPDX-License-Identifier: Apache-2.0
#include "core/ops/families/scatter.h"
#include "core/ops/gradient.h"
#include "core/ops/op_helpers.h"

namespace mge::op_scatter_nd {
namespace {

// Returns the required shape of the updates; unknown sizes are -1.
absl::StatusOr<Shape> UpdateShape(std::span<const int64_t> x, std::span<const int64_t> indices) {
  int64_t r = static_cast<int64_t>(x.size());
  if (r < 1 || indices.empty()) return BadNode("data and indices must have at least one dimension");
  int64_t depth = indices.back();
  if (depth < 1 || depth > r) {
    return BadNode(fmt::format("indices have {} coordinates; data of shape {} allows 1 to {}", depth, ShapeText(x), r));
  }
  Shape out(indices.begin(), indices.end() - 1);
  out.insert(out.end(), x.begin() + depth, x.end());
  return out;
}

absl::Status Infer(InferContext& ctx) {
  const TensorType& x = ctx.input(0);
  const TensorType& indices = ctx.input(1);
  MGE_RETURN_IF_ERROR(CheckReduction(ctx.attrs()));
  MGE_RETURN_IF_ERROR(SameElementTypes(ctx, {0, 2}));
  if (x.has_rank && indices.has_rank && !indices.dims.empty() && indices.dims.back() != kUnknownDim) {
    MGE_ASSIGN_OR_RETURN(Shape wanted, UpdateShape(x.dims, indices.dims));
    if (ctx.input(2).has_rank) MGE_RETURN_IF_ERROR(RequireShape("updates", ctx.input(2).dims, wanted));
  }
  ctx.SetOutput(0, x);
  return absl::OkStatus();
}

absl::Status Eval(EvalContext& ctx) {
  const Tensor& x = ctx.input(0);
  const Tensor& indices = ctx.input(1);
  const Tensor& updates = ctx.input(2);
  MGE_RETURN_IF_ERROR(CheckReduction(ctx.attrs()));
  MGE_ASSIGN_OR_RETURN(Shape wanted, UpdateShape(x.shape(), indices.shape()));
  MGE_RETURN_IF_ERROR(RequireShape("updates", updates.shape(), wanted));
  MGE_ASSIGN_OR_RETURN(Tensor * y, ctx.Output(0, x.dtype(), x.shape()));
  CopyElements(x, 0, *y, 0, x.elements());
  const int64_t depth = indices.shape().back();
  const int64_t count = indices.elements() / depth;
  const int64_t block = Product(x.shape(), depth, x.rank());
  Shape strides = Strides(x.shape());
  IndexView index(indices);
  absl::Status status;
  MGE_RETURN_IF_ERROR(DispatchReduction(ctx, x.dtype(), ctx.attrs().Text("reduction"), [&](auto tag, auto join) {
    using T = typename decltype(tag)::type;
    auto in = updates.Data<T>();
    auto out = y->MutableData<T>();
    for (int64_t i = 0; i < count; ++i) {
      int64_t to = 0;
      for (int64_t d = 0; d < depth; ++d) {
        int64_t j = index[i * depth + d];
        status = CheckIndex(ctx, "index", x.shape()[d], &j);
        if (!status.ok()) return;
        to += j * strides[d];
      }
      for (int64_t b = 0; b < block; ++b) out[to + b] = join(out[to + b], in[i * block + b]);
    }
  }));
  return status;
}

absl::Status Gradient(GradientContext& g) { return ScatterGradient(g, "ScatterND", "GatherND", {}); }

}  // namespace

MGE_OP(scatter_nd) = {
    .name = "ScatterND",
    .doc = "The data with slices set, or combined by `reduction`, at vectors of coordinates.",
    .inputs = {{"data"}, {"indices", {DType::kI64}}, {"updates"}},
    .outputs = {{"output"}},
    .attrs = {{"reduction", "none", "none, add, mul, max or min"}},
    .infer = Infer,
    .eval = Eval,
    .gradient = Gradient,
    .in_place = {{0, 0}},
    .since = 11,
    .examples = {"(T[4,5], int64[2,1]<3,0>, T[2,5])", "(T[4,5], int64[3,2]<3,0,2,0,-1,2>, T[3]) {reduction=\"add\"}"}};

}  // namespace mge::op_scatter_nd
