// SPDX-License-Identifier: Apache-2.0
#include "core/ops/families/reduce.h"

#include "core/ops/families/movement.h"

namespace mge {
namespace {

// Returns for each dimension whether it is reduced.
absl::StatusOr<std::vector<char>> ReducedAxes(const Node& node, const Ints& axes, int64_t rank) {
  std::vector<char> reduced(rank, 0);
  if (axes.empty() && node.attrs.Int("noop_with_empty_axes") != 0) return reduced;
  MGE_ASSIGN_OR_RETURN(Ints all, NormalizeAxes(axes, rank));
  for (int64_t a : all) reduced[a] = 1;
  return reduced;
}

}  // namespace

absl::Status ReduceInfer(InferContext& ctx) {
  const TensorType& x = ctx.input(0);
  bool keep = ctx.attrs().Int("keepdims") != 0;
  std::optional<Ints> axes = ctx.has_input(1) ? KnownInts(ctx, 1) : Ints{};
  if (!x.has_rank || (!axes && !keep)) {
    ctx.SetOutput(0, UnrankedType(x.dtype));
    return absl::OkStatus();
  }
  if (!axes) {
    ctx.SetOutput(0, RankedType(x.dtype, static_cast<int64_t>(x.dims.size())));
    return absl::OkStatus();
  }
  MGE_ASSIGN_OR_RETURN(std::vector<char> reduced, ReducedAxes(ctx.node(), *axes, static_cast<int64_t>(x.dims.size())));
  TensorType out;
  out.dtype = x.dtype;
  out.has_rank = true;
  for (size_t d = 0; d < x.dims.size(); ++d) {
    if (reduced[d] && !keep) continue;
    out.dims.push_back(reduced[d] ? 1 : x.dims[d]);
    out.symbols.push_back(!reduced[d] && d < x.symbols.size() ? x.symbols[d] : "");
  }
  ctx.SetOutput(0, std::move(out));
  return absl::OkStatus();
}

absl::Status UpgradeReduce(Graph& graph, Node& node) {
  MoveAttributeToInput(graph, node, "axes", 1);
  return absl::OkStatus();
}

absl::StatusOr<Reduction> ResolveReduction(EvalContext& ctx) {
  const Shape& shape = ctx.input(0).shape();
  Ints axes;
  if (ctx.has_input(1)) {
    MGE_ASSIGN_OR_RETURN(axes, IntsInput(ctx, 1));
  }
  MGE_ASSIGN_OR_RETURN(std::vector<char> reduced, ReducedAxes(ctx.node(), axes, static_cast<int64_t>(shape.size())));
  bool keep = ctx.attrs().Int("keepdims") != 0;
  Reduction r;
  for (size_t d = 0; d < shape.size(); ++d) {
    r.kept.push_back(reduced[d] ? 1 : shape[d]);
    if (reduced[d]) r.count *= shape[d];
    if (!reduced[d] || keep) r.out.push_back(r.kept.back());
  }
  return r;
}

}  // namespace mge
