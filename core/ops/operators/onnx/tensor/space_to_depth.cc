// SPDX-License-Identifier: Apache-2.0
#include "core/ops/families/movement.h"
#include "core/ops/gradient.h"
#include "core/ops/op_helpers.h"

namespace mge::op_space_to_depth {
namespace {

absl::StatusOr<Shape> Result(std::span<const int64_t> x, int64_t block) {
  MGE_RETURN_IF_ERROR(RequireRank("input", x, 4));
  int64_t square;
  if (block < 1 || !CheckedMul(block, block, &square)) return BadNode(fmt::format("blocksize {} is out of range", block));
  Shape out(x.begin(), x.end());
  if (x[1] != kUnknownDim && !CheckedMul(x[1], square, &out[1])) return BadNode("size overflow");
  for (int d : {2, 3}) {
    if (x[d] == kUnknownDim) continue;
    if (x[d] % block != 0) {
      return BadNode(fmt::format("dimension {} of {} is not a multiple of blocksize {}", d, ShapeText(x), block));
    }
    out[d] = x[d] / block;
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
  MGE_ASSIGN_OR_RETURN(Shape shape, Result(x.shape(), b));
  const int64_t channels = x.shape()[1], h = shape[2], w = shape[3], row = x.shape()[3];
  MGE_ASSIGN_OR_RETURN(int mode, ReadChoice(ctx.attrs(), "mode", {"DCR", "CRD"}));
  const int64_t plane = x.shape()[2] * row;
  // DCR: the output's channel is (row, column, channel). CRD: it is (channel, row, column).
  const bool rows_first = mode == 0;
  Shape extents = rows_first ? Shape{shape[0], b, b, channels, h, w} : Shape{shape[0], channels, b, b, h, w};
  Shape strides =
      rows_first ? Shape{channels * plane, row, 1, plane, b * row, b} : Shape{channels * plane, plane, row, 1, b * row, b};
  MGE_ASSIGN_OR_RETURN(Tensor * y, ctx.Output(0, x.dtype(), std::move(shape)));
  CopyRegion(x, 0, strides, *y, 0, Strides(extents), extents);
  return absl::OkStatus();
}

absl::Status Gradient(GradientContext& g) {
  Attributes attrs = IntAttribute("blocksize", g.attrs().Int("blocksize"));
  attrs.Set("mode", g.attrs().Text("mode"));
  return g.Give(0, g.Of("DepthToSpace", {g.dy().id()}, std::move(attrs)));
}

}  // namespace

MGE_OP(space_to_depth) = {
    .name = "SpaceToDepth",
    .doc = "Moves blocks of pixels into blocks of channels.",
    .inputs = {{"input"}},
    .outputs = {{"output"}},
    .attrs = {{"blocksize", AttrType::kInt, Presence::kRequired, "the size of a block along height and width"},
              {"mode", "DCR", "DCR or CRD: the order of depth, column and row"}},
    .infer = Infer,
    .eval = Eval,
    .gradient = Gradient,
    .examples = {"(T[2,3,4,6]) {blocksize=2}", "(T[2,3,4,6]) {blocksize=2, mode=\"CRD\"}"}};

}  // namespace mge::op_space_to_depth
