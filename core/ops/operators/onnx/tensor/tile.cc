// SPDX-License-Identifier: Apache-2.0
#include "core/ops/families/movement.h"
#include "core/ops/gradient.h"
#include "core/ops/op_helpers.h"

namespace mge::op_tile {
namespace {

// Returns the repeats per dimension. `axis` exists in operator set 1 only, where one dimension was repeated.
absl::StatusOr<Ints> RepeatsOf(const Tensor& repeats, /*nullable*/ const Tensor* axis, int64_t rank) {
  auto number = [](std::string_view name, const Tensor& t) -> absl::StatusOr<int64_t> {
    if (!kFloating.Contains(t.dtype())) return ScalarInt(name, t);
    MGE_ASSIGN_OR_RETURN(double value, ScalarFloat(name, t));
    if (!(value > -1e9 && value < 1e15)) return BadNode(fmt::format("{} is {}, which is out of range", name, value));
    return static_cast<int64_t>(value);
  };
  Ints out(rank, 1);
  if (axis) {
    MGE_ASSIGN_OR_RETURN(int64_t at, number("axis", *axis));
    MGE_ASSIGN_OR_RETURN(at, NormalizeAxis(at, rank));
    MGE_ASSIGN_OR_RETURN(out[at], number("tiles", repeats));
  } else {
    if (repeats.dtype() != DType::kI64 || repeats.rank() != 1 || repeats.elements() != rank) {
      return BadNode(fmt::format("repeats is {}{}; it must be int64[{}], one for each dimension", DTypeName(repeats.dtype()),
                                 ShapeText(repeats.shape()), rank));
    }
    out = repeats.ToInts();
  }
  for (int64_t r : out) {
    if (r < 0) return BadNode(fmt::format("repeats {} must not be negative", ShapeText(out)));
  }
  return out;
}

absl::Status Infer(InferContext& ctx) {
  const TensorType& x = ctx.input(0);
  if (!x.has_rank) {
    ctx.SetOutput(0, UnrankedType(x.dtype));
    return absl::OkStatus();
  }
  const Tensor* axis = ctx.has_input(2) ? ctx.constant(2) : nullptr;
  if (!ctx.constant(1) || (ctx.has_input(2) && !axis)) {
    ctx.SetOutput(0, RankedType(x.dtype, x.dims.size()));
    return absl::OkStatus();
  }
  MGE_ASSIGN_OR_RETURN(Ints repeats, RepeatsOf(*ctx.constant(1), axis, x.dims.size()));
  Shape dims = x.dims;
  for (size_t d = 0; d < dims.size(); ++d) {
    if (dims[d] != kUnknownDim && !CheckedMul(dims[d], repeats[d], &dims[d])) {
      return ctx.Invalid(fmt::format("size overflow: {} repeated {} times", ShapeText(x.dims), ShapeText(repeats)));
    }
  }
  ctx.SetOutput(0, MakeType(x.dtype, std::move(dims)));
  return absl::OkStatus();
}

absl::Status Eval(EvalContext& ctx) {
  const Tensor& x = ctx.input(0);
  MGE_ASSIGN_OR_RETURN(Ints repeats, RepeatsOf(ctx.input(1), ctx.has_input(2) ? &ctx.input(2) : nullptr, x.rank()));
  Shape shape = x.shape();
  Shape in = Strides(x.shape());
  for (int64_t d = 0; d < x.rank(); ++d) {
    if (!CheckedMul(shape[d], repeats[d], &shape[d])) {
      return ctx.Invalid(fmt::format("size overflow: {} repeated {} times", ShapeText(x.shape()), ShapeText(repeats)));
    }
  }
  MGE_ASSIGN_OR_RETURN(Tensor * y, ctx.Output(0, x.dtype(), shape));
  if (y->elements() == 0) return absl::OkStatus();
  // Each dimension is copied as two: the repeats (stride 0), then the elements.
  Shape out = Strides(shape);
  Shape extents, in_strides, out_strides;
  for (int64_t d = 0; d < x.rank(); ++d) {
    extents.push_back(repeats[d]);
    in_strides.push_back(0);
    out_strides.push_back(out[d] * x.shape()[d]);
    extents.push_back(x.shape()[d]);
    in_strides.push_back(in[d]);
    out_strides.push_back(out[d]);
  }
  CopyRegion(x, 0, in_strides, *y, 0, out_strides, extents);
  return absl::OkStatus();
}

absl::Status Upgrade(Graph&, Node& node) {
  if (node.version >= 6 && node.inputs.size() > 2) return BadNode("a third input is allowed in operator set 1 only");
  return absl::OkStatus();
}

// Dimension i of the output is [repeats[i], size[i]]: sums over the repeats.
absl::Status Gradient(GradientContext& g) {
  MGE_ASSIGN_OR_RETURN(const int64_t rank, g.Rank(0));
  auto column = [&](ValueId v) { return g.Add("Unsqueeze", {v, g.Integers({1})}); };
  const ValueId pairs = g.Add("Concat", {column(g.x(1).id()), column(g.ShapeOf(g.x()))}, IntAttribute("axis", 1));
  const Term parts = g.Of("Reshape", {g.dy().id(), g.Add("Reshape", {pairs, g.Integers({-1})})});
  Ints repeats;
  for (int64_t i = 0; i < rank; ++i) repeats.push_back(2 * i);
  return g.Set(0, g.Of("ReduceSum", {parts.id(), g.Integers(repeats)}, IntAttribute("keepdims", 0)));
}

}  // namespace

MGE_OP(tile) = {.name = "Tile",
                .doc = "Repeats the data along its dimensions.",
                .inputs = {{"input"}, {"repeats", kNumeric}, {"axis", kNumeric, Arity::kOptional}},
                .outputs = {{"output"}},
                .infer = Infer,
                .eval = Eval,
                .upgrade = Upgrade,
                .gradient = Gradient,
                .traits = kNoFold,
                .examples = {"(T[3,5], int64[2]<2,3>)"}};

}  // namespace mge::op_tile
