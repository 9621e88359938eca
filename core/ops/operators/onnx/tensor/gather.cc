// SPDX-License-Identifier: Apache-2.0
#include "core/ops/families/movement.h"
#include "core/ops/gradient.h"

namespace mge::op_gather {
namespace {

absl::Status Infer(InferContext& ctx) {
  const TensorType& x = ctx.input(0);
  const TensorType& indices = ctx.input(1);
  if (!x.has_rank || !indices.has_rank) {
    ctx.SetOutput(0, UnrankedType(x.dtype));
    return absl::OkStatus();
  }
  MGE_ASSIGN_OR_RETURN(int64_t axis, NormalizeAxis(ctx.attrs().Int("axis"), x.dims.size()));
  Shape dims(x.dims.begin(), x.dims.begin() + axis);
  dims.insert(dims.end(), indices.dims.begin(), indices.dims.end());
  dims.insert(dims.end(), x.dims.begin() + axis + 1, x.dims.end());
  ctx.SetOutput(0, MakeType(x.dtype, std::move(dims)));
  return absl::OkStatus();
}

absl::Status Eval(EvalContext& ctx) {
  const Tensor& x = ctx.input(0);
  const Tensor& indices = ctx.input(1);
  MGE_ASSIGN_OR_RETURN(int64_t axis, NormalizeAxis(ctx.attrs().Int("axis"), x.rank()));
  Shape shape(x.shape().begin(), x.shape().begin() + axis);
  shape.insert(shape.end(), indices.shape().begin(), indices.shape().end());
  shape.insert(shape.end(), x.shape().begin() + axis + 1, x.shape().end());
  MGE_ASSIGN_OR_RETURN(Tensor * y, ctx.Output(0, x.dtype(), std::move(shape)));
  if (y->elements() == 0 && x.elements() != 0) return absl::OkStatus();
  const int64_t size = x.shape()[axis];
  const int64_t block = Product(x.shape(), axis + 1, x.rank());
  const int64_t outer = Product(x.shape(), 0, axis);
  const int64_t count = indices.elements();
  IndexView index(indices);
  for (int64_t j = 0; j < count; ++j) {
    int64_t from = index[j];
    MGE_RETURN_IF_ERROR(CheckIndex(ctx, "index", size, &from));
    if (y->elements() == 0) continue;
    for (int64_t o = 0; o < outer; ++o) {
      CopyElements(x, (o * size + from) * block, *y, (o * count + j) * block, block);
    }
  }
  return absl::OkStatus();
}

// Adds the rows of the gradient to those of zeros that were gathered. ScatterND does that for the first axis; other axes are
// moved there and back.
absl::Status Gradient(GradientContext& g) {
  MGE_ASSIGN_OR_RETURN(const int64_t rank, g.Rank(0));
  MGE_ASSIGN_OR_RETURN(const int64_t rank_of_indices, g.Rank(1));
  MGE_ASSIGN_OR_RETURN(const int64_t axis, NormalizeAxis(g.attrs().Int("axis"), static_cast<size_t>(rank)));
  const Term indices = g.Of("Unsqueeze", {g.CastTo(g.x(1), DType::kI64).id(), g.Integers({-1})});
  auto scatter = [&](const Term& zeros, const Term& updates) {
    return g.Of("ScatterND", {zeros.id(), indices.id(), updates.id()}, OneAttribute("reduction", std::string("add")));
  };
  if (axis == 0) return g.Set(0, scatter(g.Fill(0, g.x()), g.dy()));
  Ints front, updates_front;  // the axis first, then the others
  for (int64_t i = 0; i < rank_of_indices; ++i) updates_front.push_back(axis + i);
  front.push_back(axis);
  for (int64_t i = 0; i < rank; ++i) {
    if (i == axis) continue;
    front.push_back(i);
    updates_front.push_back(i < axis ? i : i - 1 + rank_of_indices);
  }
  Ints back(front.size());
  for (size_t i = 0; i < front.size(); ++i) back[static_cast<size_t>(front[i])] = static_cast<int64_t>(i);
  auto moved = [&](const Term& x, const Ints& perm) { return g.Of("Transpose", {x.id()}, OneAttribute("perm", perm)); };
  return g.Set(0, moved(scatter(moved(g.Fill(0, g.x()), front), moved(g.dy(), updates_front)), back));
}

}  // namespace

MGE_OP(gather) = {.name = "Gather",
                  .doc = "Slices of the data along `axis`, selected by indices. Negative indices count from the end.",
                  .inputs = {{"data"}, {"indices", kIndex}},
                  .outputs = {{"output"}},
                  .attrs = {AxisOf({"axis", 0, "the axis"})},
                  .infer = Infer,
                  .eval = Eval,
                  .gradient = Gradient,
                  .examples = {"(T[7,5], int64[3]<6,0,-2>)", "(T[3,7,2], int64[2,2]<1,5,0,6>) {axis=1}"}};

}  // namespace mge::op_gather
