// SPDX-License-Identifier: Apache-2.0
// DepthToSpace and SpaceToDepth: blocks of channels and blocks of pixels.
#include "core/ops/families/movement.h"
#include "core/ops/gradient.h"
#include "core/ops/op_helpers.h"

namespace mge::op_depth_to_space {
namespace {

absl::StatusOr<Shape> DepthToSpaceShape(std::span<const int64_t> x, int64_t block) {
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

absl::StatusOr<Shape> SpaceToDepthShape(std::span<const int64_t> x, int64_t block) {
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

template <absl::StatusOr<Shape> (*Result)(std::span<const int64_t>, int64_t)>
absl::Status Infer(InferContext& ctx) {
  const TensorType& x = ctx.input(0);
  MGE_RETURN_IF_ERROR(ReadChoice(ctx.attrs(), "mode", {"DCR", "CRD"}).status());
  Shape dims = x.has_rank ? x.dims : Shape(4, kUnknownDim);
  MGE_ASSIGN_OR_RETURN(Shape out, Result(dims, ctx.attrs().Int("blocksize")));
  ctx.SetOutput(0, MakeType(x.dtype, std::move(out)));
  return absl::OkStatus();
}

absl::Status EvalDepthToSpace(EvalContext& ctx) {
  const Tensor& x = ctx.input(0);
  const int64_t b = ctx.attrs().Int("blocksize");
  MGE_ASSIGN_OR_RETURN(int mode, ReadChoice(ctx.attrs(), "mode", {"DCR", "CRD"}));
  MGE_ASSIGN_OR_RETURN(Shape shape, DepthToSpaceShape(x.shape(), b));
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

absl::Status EvalSpaceToDepth(EvalContext& ctx) {
  const Tensor& x = ctx.input(0);
  const int64_t b = ctx.attrs().Int("blocksize");
  MGE_ASSIGN_OR_RETURN(Shape shape, SpaceToDepthShape(x.shape(), b));
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

// Sets the gradient to the result of the inverse operator.
absl::Status SetInverse(GradientContext& g, const char* inverse) {
  Attributes attrs = IntAttribute("blocksize", g.attrs().Int("blocksize"));
  attrs.Set("mode", g.attrs().Text("mode"));
  return g.Set(0, g.Of(inverse, {g.dy().id()}, std::move(attrs)));
}

constexpr OpDef Row(std::string_view name, std::string_view doc, OpDef more) {
  more.name = name;
  more.doc = doc;
  more.inputs = {{"input"}};
  more.outputs = {{"output"}};
  more.attrs = {{"blocksize", AttrType::kInt, Presence::kRequired, "the size of a block along height and width"},
                {"mode", "DCR", "DCR or CRD: the order of depth, column and row"}};
  return more;
}

constexpr OpDef kRows[] = {
    Row("DepthToSpace", "Moves blocks of channels into blocks of pixels.",
        {.infer = Infer<DepthToSpaceShape>,
         .eval = EvalDepthToSpace,
         .gradient = [](GradientContext& g) { return SetInverse(g, "SpaceToDepth"); },
         .examples = {"(T[2,8,3,5]) {blocksize=2}", "(T[1,8,3,2]) {blocksize=2, mode=\"CRD\"}"}}),
    Row("SpaceToDepth", "Moves blocks of pixels into blocks of channels.",
        {.infer = Infer<SpaceToDepthShape>,
         .eval = EvalSpaceToDepth,
         .gradient = [](GradientContext& g) { return SetInverse(g, "DepthToSpace"); },
         .examples = {"(T[2,3,4,6]) {blocksize=2}", "(T[2,3,4,6]) {blocksize=2, mode=\"CRD\"}"}}),
};

}  // namespace

MGE_OPS(depth_to_space) = kRows;

}  // namespace mge::op_depth_to_space
