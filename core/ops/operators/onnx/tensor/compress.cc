// SPDX-License-Identifier: Apache-2.0
#include "core/ops/families/movement.h"

namespace mge::op_compress {
namespace {

absl::Status Infer(InferContext& ctx) {
  const TensorType& x = ctx.input(0);
  if (ctx.input(1).has_rank) MGE_RETURN_IF_ERROR(RequireRank("condition", ctx.input(1).dims, 1));
  if (!ctx.attrs().Has("axis")) {
    ctx.SetOutput(0, RankedType(x.dtype, 1));
  } else if (!x.has_rank) {
    ctx.SetOutput(0, UnrankedType(x.dtype));
  } else {
    MGE_ASSIGN_OR_RETURN(int64_t axis, NormalizeAxis(ctx.attrs().Int("axis"), x.dims.size()));
    Shape dims = x.dims;
    dims[axis] = kUnknownDim;
    ctx.SetOutput(0, MakeType(x.dtype, std::move(dims)));
  }
  return absl::OkStatus();
}

absl::Status Eval(EvalContext& ctx) {
  MGE_RETURN_IF_ERROR(RequireRank("condition", ctx.input(1).shape(), 1));
  std::span<const bool> condition = ctx.input(1).Data<bool>();
  Tensor x = ctx.input(0);
  int64_t axis = 0;
  if (ctx.attrs().Has("axis")) {
    MGE_ASSIGN_OR_RETURN(axis, NormalizeAxis(ctx.attrs().Int("axis"), x.rank()));
  } else {
    x = x.Reshaped({x.elements()});
  }
  const int64_t size = x.shape()[axis];
  int64_t kept = 0;
  for (size_t i = 0; i < condition.size(); ++i) {
    if (!condition[i]) continue;
    if (static_cast<int64_t>(i) >= size) return IndexError(ctx, "true condition", i, size);
    ++kept;
  }
  Shape shape = x.shape();
  shape[axis] = kept;
  const int64_t outer = Product(shape, 0, axis), block = Product(shape, axis + 1, x.rank());
  MGE_ASSIGN_OR_RETURN(Tensor * y, ctx.Output(0, x.dtype(), std::move(shape)));
  if (y->elements() == 0) return absl::OkStatus();
  int64_t to = 0;
  for (size_t i = 0; i < condition.size(); ++i) {
    if (!condition[i]) continue;
    for (int64_t o = 0; o < outer; ++o) CopyElements(x, (o * size + i) * block, *y, (o * kept + to) * block, block);
    ++to;
  }
  return absl::OkStatus();
}

}  // namespace

MGE_OP(compress) = {.name = "Compress",
                    .doc = "The slices along `axis`, or the elements if there is no axis, for which the condition is true.",
                    .inputs = {{"input"}, {"condition", kBoolean}},
                    .outputs = {{"output"}},
                    .attrs = {AxisOf({"axis", AttrType::kInt, Presence::kOptional, "absent: the input is flattened"})},
                    .infer = Infer,
                    .eval = Eval,
                    .traits = kDynamicShape,
                    .since = 9};

}  // namespace mge::op_compress
