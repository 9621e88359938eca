// SPDX-License-Identifier: Apache-2.0
#include "core/ops/families/movement.h"
#include "core/ops/gradient.h"
#include "core/ops/op_helpers.h"

namespace mge::op_squeeze {
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

absl::Status Infer(InferContext& ctx) {
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

absl::Status Eval(EvalContext& ctx) {
  const Tensor& x = ctx.input(0);
  Ints axes;
  if (ctx.has_input(1)) {
    MGE_ASSIGN_OR_RETURN(axes, IntsInput(ctx, 1));
  }
  MGE_ASSIGN_OR_RETURN(Shape out, Squeezed(x.shape(), ctx.has_input(1) ? &axes : nullptr));
  return ctx.SetOutput(0, TensorValue(x.Reshaped(std::move(out))));
}

absl::Status Upgrade(Graph& graph, Node& node) {
  if (node.version < 13) MoveAttributeToInput(graph, node, "axes", 1);
  return absl::OkStatus();
}

}  // namespace

MGE_OP(squeeze) = {.name = "Squeeze",
                   .doc = "Removes dimensions of size 1: those in `axes`, else all.",
                   .inputs = {{"data"}, {"axes", {DType::kI64}, Arity::kOptional}},
                   .outputs = {{"squeezed"}},
                   .infer = Infer,
                   .eval = Eval,
                   .upgrade = Upgrade,
                   .gradient = SameElementsGradient,
                   .in_place = {{0, 0}},
                   .traits = kView,
                   .examples = {"(T[3,1,5], int64[1]<1>)"}};

}  // namespace mge::op_squeeze
