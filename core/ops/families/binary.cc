// SPDX-License-Identifier: Apache-2.0
#include "core/ops/families/binary.h"

namespace mge {
namespace {

absl::Status Infer(InferContext& ctx, bool to_bool) {
  TensorType a = ctx.input(0), b = ctx.input(1);
  if (a.dtype != DType::kUndefined && b.dtype != DType::kUndefined && a.dtype != b.dtype) {
    return ctx.Invalid(fmt::format("inputs have different types: {} and {}", DTypeName(a.dtype), DTypeName(b.dtype)));
  }
  TensorType out;
  out.dtype = to_bool ? DType::kBool : a.dtype != DType::kUndefined ? a.dtype : b.dtype;
  if (a.has_rank && b.has_rank) {
    MGE_ASSIGN_OR_RETURN(b.dims, AlignedShape(ctx.node(), b.dims, static_cast<int64_t>(a.dims.size())));
    absl::StatusOr<Shape> dims = BroadcastShapes(a.dims, b.dims);
    if (!dims.ok()) return ctx.Invalid(ErrorTitle(dims.status()));
    out.has_rank = true;
    out.dims = *std::move(dims);
    if (out.dims == a.dims) out.symbols = a.symbols;
  }
  ctx.SetOutput(0, std::move(out));
  return absl::OkStatus();
}

}  // namespace

absl::Status DividedByZero(const EvalContext& ctx) {
  return Fail(errors::kNoResult, fmt::format("{}: an integer is divided by zero", ctx.node().op),
              {.where = NodePlace(ctx.node())});
}

absl::Status UpgradeOldBroadcast(Graph&, Node& node) {
  if (node.version >= 7) return absl::OkStatus();
  if (node.attrs.Int("broadcast") != 0 && node.attrs.Has("axis")) node.attrs.Set("_axis", node.attrs.Int("axis"));
  node.attrs.Remove("axis");
  node.attrs.Remove("broadcast");
  node.attrs.Remove("consumed_inputs");
  return absl::OkStatus();
}

absl::StatusOr<Shape> AlignedShape(const Node& node, const Shape& b, int64_t rank) {
  if (!node.attrs.Has("_axis")) return b;
  int64_t axis = node.attrs.Int("_axis");
  int64_t first = axis < 0 ? axis + rank : axis;
  if (first < 0 || first > rank - static_cast<int64_t>(b.size())) {
    return Fail(
        errors::kInvalidNode,
        fmt::format("{}: input B of rank {} at axis {} does not fit into A of rank {}", node.op, b.size(), axis, rank),
        {.where = NodePlace(node)});
  }
  Shape out = b;
  out.resize(rank - first, 1);
  return out;
}

absl::StatusOr<Tensor> AlignedSecond(EvalContext& ctx) {
  const Tensor& b = ctx.input(1);
  MGE_ASSIGN_OR_RETURN(Shape shape, AlignedShape(ctx.node(), b.shape(), ctx.input(0).rank()));
  return b.Reshaped(std::move(shape));
}

absl::Status BinaryInfer(InferContext& ctx) { return Infer(ctx, false); }
absl::Status CompareInfer(InferContext& ctx) { return Infer(ctx, true); }

}  // namespace mge
