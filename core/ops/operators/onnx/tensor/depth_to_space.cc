// SPDX-License-Identifier: Apache-2.0
#include "core/ops/families/movement.h"
#include "core/ops/gradient.h"
#include "core/ops/op_helpers.h"

namespace mge::op_depth_to_space {
namespace {

absl::StatusOr<Shape> Result(std::span<const int64_t> x, int64_t block) {
  MGE_RETURN_IF_ERROR(RequireRank("input", x, 4));
  int64_t square;
  if (block < 1 || !CheckedMul(block, block, &square)) return BadNode(fmt::format("blocksize {} is out of range", block));
  Shape out(x.begin(), x.end());
  if (x[1] != kUnknownDim) {
    if (x[1] % square != 0) {
      return BadNode(fmt::format("{} channels are not a multiple of {} (blocksize squared)", x[1], square));
    }
    out[1] = x[1] / square;
  }
  for (int d : {2, 3}) {
    if (x[d] != kUnknownDim && !CheckedMul(x[d], block, &out[d])) return BadNode("size overflow");
  }
  return out;
}

absl::Status Infer(InferContext& ctx) {
  const TensorType& x = ctx.input(0);
  MGE_RETURN_IF_ERROR(ReadChoice(ctx.attrs(), "mode", {"DCR", "CRD"}).status());
  Shape dims = x.has_rank ? x.dims : Shape(4, kUnknownDim);
  MGE_ASSIGN_OR_RETURN(Shape out, Result(dims, ctx.attrs().Int("blocksize")));
  ctx.SetOutput(0, MakeType(x.dtype, std::move(out)));
  return absl::OkStatus();
}

absl::Status Eval(EvalContext& ctx) {
  const Tensor& x = ctx.input(0);
  const int64_t b = ctx.attrs().Int("blocksize");
  MGE_ASSIGN_OR_RETURN(int mode, ReadChoice(ctx.attrs(), "mode", {"DCR", "CRD"}));
  MGE_ASSIGN_OR_RETURN(Shape shape, Result(x.shape(), b));
  const int64_t channels = shape[1], h = x.shape()[2], w = x.shape()[3];
  Shape extents = {shape[0], channels, h, b, w, b};
  MGE_ASSIGN_OR_RETURN(Tensor * y, ctx.Output(0, x.dtype(), std::move(shape)));
  const int64_t plane = h * w;
  // DCR: the input's channel is (row, column, channel). CRD: it is (channel, row, column).
  Shape strides = mode == 0 ? Shape{x.shape()[1] * plane, plane, w, b * channels * plane, 1, channels * plane}
                            : Shape{x.shape()[1] * plane, b * b * plane, w, b * plane, 1, plane};
  CopyRegion(x, 0, strides, *y, 0, Strides(extents), extents);
  return absl::OkStatus();
}

absl::Status Gradient(GradientContext& g) {
  Attributes attrs = IntAttribute("blocksize", g.attrs().Int("blocksize"));
  attrs.Set("mode", g.attrs().Text("mode"));
  return g.Give(0, g.Of("SpaceToDepth", {g.dy().id()}, std::move(attrs)));
}

}  // namespace

MGE_OP(depth_to_space) = {
    .name = "DepthToSpace",
    .doc = "Moves blocks of channels into blocks of pixels.",
    .inputs = {{"input"}},
    .outputs = {{"output"}},
    .attrs = {{"blocksize", AttrType::kInt, Presence::kRequired, "the size of a block along height and width"},
              {"mode", "DCR", "DCR or CRD: the order of depth, column and row"}},
    .infer = Infer,
    .eval = Eval,
    .gradient = Gradient,
    .examples = {"(T[2,8,3,5]) {blocksize=2}", "(T[1,8,3,2]) {blocksize=2, mode=\"CRD\"}"}};

}  // namespace mge::op_depth_to_space
