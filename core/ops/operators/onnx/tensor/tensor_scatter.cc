// SPDX-License-Identifier: Apache-2.0
#include "core/ops/families/arg_reduce.h"
#include "core/ops/families/movement.h"
#include "core/ops/gradient.h"

namespace mge::op_tensor_scatter {
namespace {

absl::StatusOr<int64_t> SequenceAxis(const Attributes& attrs, int64_t rank) {
  MGE_ASSIGN_OR_RETURN(int64_t axis, NormalizeAxis(attrs.Int("axis"), rank));
  if (axis == 0) return BadNode("axis 0 is the batch, which has no sequence");
  return axis;
}

absl::StatusOr<bool> IsCircular(const Attributes& attrs) {
  MGE_ASSIGN_OR_RETURN(int mode, ReadChoice(attrs, "mode", {"linear", "circular"}));
  return mode == 1;
}

// Checks that the update has the shape of the cache, but for a sequence that may be shorter.
absl::Status CheckUpdate(std::span<const int64_t> update, std::span<const int64_t> cache, int64_t axis) {
  Shape wanted(cache.begin(), cache.end());
  if (update.size() == cache.size()) wanted[axis] = update[axis];
  MGE_RETURN_IF_ERROR(RequireShape("update", update, wanted));
  if (cache[axis] == kUnknownDim || update[axis] <= cache[axis]) return absl::OkStatus();
  return BadNode(fmt::format("the update has {} tokens, the cache {}", update[axis], cache[axis]));
}

absl::Status Infer(InferContext& ctx) {
  const TensorType &cache = ctx.input(0), &update = ctx.input(1);
  MGE_RETURN_IF_ERROR(SameElementTypes(ctx, {0, 1}));
  MGE_RETURN_IF_ERROR(IsCircular(ctx.attrs()).status());
  if (cache.has_rank) {
    MGE_ASSIGN_OR_RETURN(int64_t axis, SequenceAxis(ctx.attrs(), static_cast<int64_t>(cache.dims.size())));
    if (update.has_rank) MGE_RETURN_IF_ERROR(CheckUpdate(update.dims, cache.dims, axis));
    if (ctx.has_input(2) && ctx.input(2).has_rank) {
      MGE_RETURN_IF_ERROR(RequireShape("write_indices", ctx.input(2).dims, Shape{cache.dims[0]}));
    }
  }
  return SameTypeAsFirst(ctx);
}

absl::Status Eval(EvalContext& ctx) {
  const Tensor &cache = ctx.input(0), &update = ctx.input(1);
  const Shape& shape = cache.shape();
  MGE_ASSIGN_OR_RETURN(bool circular, IsCircular(ctx.attrs()));
  MGE_ASSIGN_OR_RETURN(int64_t axis, SequenceAxis(ctx.attrs(), cache.rank()));
  MGE_RETURN_IF_ERROR(CheckUpdate(update.shape(), shape, axis));
  if (ctx.has_input(2)) MGE_RETURN_IF_ERROR(RequireShape("write_indices", ctx.input(2).shape(), Shape{shape[0]}));
  const int64_t* starts = ctx.has_input(2) ? ctx.input(2).Data<int64_t>().data() : nullptr;
  const AxisSplit split = SplitAtAxis(shape, axis);
  const int64_t tokens = update.shape()[axis], rows = Product(shape, 1, axis);  // rows of each batch
  for (int64_t b = 0; starts && !circular && b < shape[0]; ++b) {
    if (starts[b] >= 0 && starts[b] <= split.size - tokens) continue;
    return Fail(errors::kIndexOutOfRange, fmt::format("write index {} leaves no place for {} tokens", starts[b], tokens),
                {.what = fmt::format("the cache has {}", split.size), .where = NodePlace(ctx.node())});
  }
  MGE_ASSIGN_OR_RETURN(Tensor * y, ctx.Output(0, cache.dtype(), shape));
  CopyElements(cache, 0, *y, 0, cache.elements());
  if (update.elements() == 0) return absl::OkStatus();
  for (int64_t row = 0; row < split.outer; ++row) {
    const int64_t start = starts ? starts[row / rows] % split.size + split.size : 0;
    for (int64_t t = 0; t < tokens; ++t) {
      const int64_t to = row * split.size + (start + t) % split.size;
      CopyElements(update, (row * tokens + t) * split.inner, *y, to * split.inner, split.inner);
    }
  }
  return absl::OkStatus();
}

}  // namespace

MGE_OP(tensor_scatter) = {
    .name = "TensorScatter",
    .doc =
        "The cache with the update's tokens from an index of each batch on. In the mode `circular`, tokens behind the "
        "end are written to the start.",
    .inputs = {{"past_cache"}, {"update"}, {"write_indices", {DType::kI64}, Arity::kOptional}},
    .outputs = {{"present_cache"}},
    .attrs = {AxisOf({"axis", -2, "the axis"}), {"mode", "linear", "linear or circular"}},
    .infer = Infer,
    .eval = Eval,
    .gradient = ReplacementGradient,
    .in_place = {{0, 0}},
    .since = 24,
    .examples = {"(T[2,3,7,5], T[2,3,2,5], int64[2]<0,5>)", "(T[2,3,5], T[2,2,5])",
                 "(T[2,7,5], T[2,4,5], int64[2]<5,13>) {mode=\"circular\"}"},
};

}  // namespace mge::op_tensor_scatter
