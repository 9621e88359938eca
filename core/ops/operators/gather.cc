// SPDX-License-Identifier: Apache-2.0
#include "core/ops/families/movement.h"

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

}  // namespace

MGE_OP(gather) = {.name = "Gather",
                  .doc = "Slices of the data along `axis`, selected by indices. Negative indices count from the end.",
                  .inputs = {{"data"}, {"indices", kIndex}},
                  .outputs = {{"output"}},
                  .attrs = {{"axis", AttrType::kInt}},
                  .infer = Infer,
                  .eval = Eval,
                  .examples = {"(T[7,5], int64[3]<6,0,-2>)", "(T[3,7,2], int64[2,2]<1,5,0,6>) {axis=1}"}};

}  // namespace mge::op_gather
