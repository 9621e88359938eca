// SPDX-License-Identifier: Apache-2.0
#include "core/ops/families/movement.h"
#include "core/ops/op_helpers.h"

namespace mge::op_center_crop_pad {
namespace {

// Returns the axes whose sizes `shape` gives: the attribute "axes", or all.
absl::StatusOr<Ints> AxesOf(const Attributes& attrs, int64_t rank) {
  Ints axes;
  std::vector<bool> seen(rank, false);
  if (!attrs.Has("axes")) {
    for (int64_t i = 0; i < rank; ++i) axes.push_back(i);
    return axes;
  }
  for (int64_t axis : attrs.IntList("axes")) {
    MGE_ASSIGN_OR_RETURN(int64_t a, NormalizeAxis(axis, rank));
    if (seen[a]) return BadNode(fmt::format("axis {} is given twice", axis));
    seen[a] = true;
    axes.push_back(a);
  }
  return axes;
}

absl::StatusOr<Shape> Result(std::span<const int64_t> x, const Ints& axes, const Ints& wanted) {
  if (wanted.size() != axes.size()) {
    return BadNode(fmt::format("shape has {} sizes for {} axes", wanted.size(), axes.size()));
  }
  MGE_RETURN_IF_ERROR(CheckedShape(wanted).status());
  Shape out(x.begin(), x.end());
  for (size_t i = 0; i < axes.size(); ++i) out[axes[i]] = wanted[i];
  return out;
}

absl::Status Infer(InferContext& ctx) {
  const TensorType& x = ctx.input(0);
  if (!x.has_rank) {
    ctx.SetOutput(0, UnrankedType(x.dtype));
    return absl::OkStatus();
  }
  MGE_ASSIGN_OR_RETURN(Ints axes, AxesOf(ctx.attrs(), x.dims.size()));
  Shape dims = x.dims;
  if (auto wanted = KnownInts(ctx, 1)) {
    MGE_ASSIGN_OR_RETURN(dims, Result(x.dims, axes, *wanted));
  } else {
    for (int64_t axis : axes) dims[axis] = kUnknownDim;
  }
  ctx.SetOutput(0, MakeType(x.dtype, std::move(dims)));
  return absl::OkStatus();
}

absl::Status Eval(EvalContext& ctx) {
  const Tensor& x = ctx.input(0);
  MGE_ASSIGN_OR_RETURN(Ints axes, AxesOf(ctx.attrs(), x.rank()));
  MGE_ASSIGN_OR_RETURN(Ints wanted, IntsInput(ctx, 1));
  MGE_ASSIGN_OR_RETURN(Shape shape, Result(x.shape(), axes, wanted));
  MGE_ASSIGN_OR_RETURN(Tensor * y, ctx.Output(0, x.dtype(), shape));
  Fill(*y, nullptr);
  Shape in = Strides(x.shape()), out = Strides(shape), extents;
  int64_t from = 0, to = 0;
  for (int64_t d = 0; d < x.rank(); ++d) {
    // If the difference is odd, the end is cropped or padded by one more than the beginning.
    int64_t size = std::min(x.shape()[d], shape[d]);
    extents.push_back(size);
    if (size == 0) return absl::OkStatus();
    from += (x.shape()[d] - size) / 2 * in[d];
    to += (shape[d] - size) / 2 * out[d];
  }
  CopyRegion(x, from, in, *y, to, out, extents);
  return absl::OkStatus();
}

}  // namespace

MGE_OP(center_crop_pad) = {.name = "CenterCropPad",
                           .doc = "Crops or pads dimensions to given sizes, centred.",
                           .inputs = {{"input_data"}, {"shape", kIndex}},
                           .outputs = {{"output_data"}},
                           .attrs = {AxisOf({"axes", AttrType::kInts, Presence::kOptional, "absent: all"})},
                           .infer = Infer,
                           .eval = Eval,
                           .since = 18,
                           .examples = {"(T[5,7], int64[2]<7,3>)"}};

}  // namespace mge::op_center_crop_pad
