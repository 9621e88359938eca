// SPDX-License-Identifier: Apache-2.0
// Squeeze and Unsqueeze: dimensions of size 1.
#include "core/ops/families/movement.h"
#include "core/ops/gradient.h"
#include "core/ops/op_helpers.h"

namespace mge::op_squeeze_family {
namespace {

// Returns the shape without the given axes, which may be named twice. If `axes` is null, removes every dimension of size 1.
absl::StatusOr<Shape> Squeezed(std::span<const int64_t> in, /*nullable*/ const Ints* axes) {
  std::vector<bool> drop(in.size(), false);
  if (!axes) {
    for (size_t i = 0; i < in.size(); ++i) drop[i] = in[i] == 1;
  } else {
    for (int64_t axis : *axes) {
      MGE_ASSIGN_OR_RETURN(int64_t a, NormalizeAxis(axis, in.size()));
      if (in[a] != 1 && in[a] != kUnknownDim) {
        return BadNode(fmt::format("axis {} of {} has size {}; only size 1 can be removed", axis, ShapeText(in), in[a]));
      }
      drop[a] = true;
    }
  }
  Shape out;
  for (size_t i = 0; i < in.size(); ++i) {
    if (!drop[i]) out.push_back(in[i]);
  }
  return out;
}

absl::Status InferSqueeze(InferContext& ctx) {
  const TensorType& x = ctx.input(0);
  auto axes = KnownInts(ctx, 1);
  if (!x.has_rank || (ctx.has_input(1) ? !axes : !IsStatic(x.dims))) {
    ctx.SetOutput(0, UnrankedType(x.dtype));
    return absl::OkStatus();
  }
  MGE_ASSIGN_OR_RETURN(Shape out, Squeezed(x.dims, axes ? &*axes : nullptr));
  ctx.SetOutput(0, MakeType(x.dtype, std::move(out)));
  return absl::OkStatus();
}

absl::Status EvalSqueeze(EvalContext& ctx) {
  const Tensor& x = ctx.input(0);
  Ints axes;
  if (ctx.has_input(1)) {
    MGE_ASSIGN_OR_RETURN(axes, IntsInput(ctx, 1));
  }
  MGE_ASSIGN_OR_RETURN(Shape out, Squeezed(x.shape(), ctx.has_input(1) ? &axes : nullptr));
  return ctx.SetOutput(0, TensorValue(x.Reshaped(std::move(out))));
}

absl::Status UpgradeSqueeze(Graph& graph, Node& node) {
  if (node.version < 13) MoveAttributeToInput(graph, node, "axes", 1);
  return absl::OkStatus();
}

absl::StatusOr<Shape> Unsqueezed(std::span<const int64_t> in, const Ints& axes) {
  int64_t rank = static_cast<int64_t>(in.size() + axes.size());
  if (rank > kMaxRank) return BadNode(fmt::format("the result has {} dimensions; at most {} are supported", rank, kMaxRank));
  std::vector<bool> added(rank, false);
  for (int64_t axis : axes) {
    MGE_ASSIGN_OR_RETURN(int64_t a, NormalizeAxis(axis, rank));
    if (added[a]) return BadNode(fmt::format("axis {} is given twice", axis));
    added[a] = true;
  }
  Shape out;
  size_t from = 0;
  for (int64_t i = 0; i < rank; ++i) out.push_back(added[i] ? 1 : in[from++]);
  return out;
}

absl::Status InferUnsqueeze(InferContext& ctx) {
  const TensorType& x = ctx.input(0);
  auto axes = KnownInts(ctx, 1);
  if (x.has_rank && axes) {
    MGE_ASSIGN_OR_RETURN(Shape out, Unsqueezed(x.dims, *axes));
    ctx.SetOutput(0, MakeType(x.dtype, std::move(out)));
    return absl::OkStatus();
  }
  const TensorType& list = ctx.input(1);
  bool count_known = list.has_rank && list.dims.size() == 1 && list.dims[0] >= 0;
  if (x.has_rank && count_known && list.dims[0] <= kMaxRank) {
    ctx.SetOutput(0, RankedType(x.dtype, x.dims.size() + list.dims[0]));
  } else {
    ctx.SetOutput(0, UnrankedType(x.dtype));
  }
  return absl::OkStatus();
}

absl::Status EvalUnsqueeze(EvalContext& ctx) {
  const Tensor& x = ctx.input(0);
  MGE_ASSIGN_OR_RETURN(Ints axes, IntsInput(ctx, 1));
  MGE_ASSIGN_OR_RETURN(Shape out, Unsqueezed(x.shape(), axes));
  return ctx.SetOutput(0, TensorValue(x.Reshaped(std::move(out))));
}

absl::Status UpgradeUnsqueeze(Graph& graph, Node& node) {
  if (node.version < 13) MoveAttributeToInput(graph, node, "axes", 1);
  return absl::OkStatus();
}

constexpr OpDef kRows[] = {
    {.name = "Squeeze",
     .doc = "Removes dimensions of size 1: those in `axes`, else all.",
     .inputs = {{"data"}, {"axes", {DType::kI64}, Arity::kOptional}},
     .outputs = {{"squeezed"}},
     .infer = InferSqueeze,
     .eval = EvalSqueeze,
     .upgrade = UpgradeSqueeze,
     .gradient = SameElementsGradient,
     .in_place = {{0, 0}},
     .traits = kView,
     .examples = {"(T[3,1,5], int64[1]<1>)"}},
    {.name = "Unsqueeze",
     .doc = "Adds dimensions of size 1. `axes` are their positions in the result.",
     .inputs = {{"data"}, {"axes", {DType::kI64}}},
     .outputs = {{"expanded"}},
     .infer = InferUnsqueeze,
     .eval = EvalUnsqueeze,
     .upgrade = UpgradeUnsqueeze,
     .gradient = SameElementsGradient,
     .in_place = {{0, 0}},
     .traits = kView,
     .examples = {"(T[3,5], int64[1]<1>)"}},
};

}  // namespace

MGE_OPS(squeeze_family) = kRows;

}  // namespace mge::op_squeeze_family
