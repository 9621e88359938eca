// SPDX-License-Identifier: Apache-2.0
#include "core/ops/families/movement.h"
#include "core/ops/gradient.h"
#include "core/ops/op_helpers.h"

namespace mge::op_unsqueeze {
namespace {

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

absl::Status Infer(InferContext& ctx) {
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

absl::Status Eval(EvalContext& ctx) {
  const Tensor& x = ctx.input(0);
  MGE_ASSIGN_OR_RETURN(Ints axes, IntsInput(ctx, 1));
  MGE_ASSIGN_OR_RETURN(Shape out, Unsqueezed(x.shape(), axes));
  return ctx.SetOutput(0, TensorValue(x.Reshaped(std::move(out))));
}

absl::Status Upgrade(Graph& graph, Node& node) {
  if (node.version < 13) MoveAttributeToInput(graph, node, "axes", 1);
  return absl::OkStatus();
}

}  // namespace

MGE_OP(unsqueeze) = {.name = "Unsqueeze",
                     .doc = "Adds dimensions of size 1. `axes` are their positions in the result.",
                     .inputs = {{"data"}, {"axes", {DType::kI64}}},
                     .outputs = {{"expanded"}},
                     .infer = Infer,
                     .eval = Eval,
                     .upgrade = Upgrade,
                     .gradient = SameElementsGradient,
                     .in_place = {{0, 0}},
                     .traits = kView,
                     .examples = {"(T[3,5], int64[1]<1>)"}};

}  // namespace mge::op_unsqueeze
