// SPDX-License-Identifier: Apache-2.0
#include "core/ops/families/movement.h"
#include "core/ops/gradient.h"

namespace mge::op_concat {
namespace {

absl::Status Infer(InferContext& ctx) {
  if (!ctx.has_input(0)) return ctx.Invalid("the node has no input");
  DType dtype = ctx.input(0).dtype;
  TensorType out;
  int64_t axis = 0;
  for (int i = 0; i < ctx.input_count(); ++i) {
    if (!ctx.has_input(i)) return ctx.Invalid(fmt::format("input {} is absent", i));
    const TensorType& x = ctx.input(i);
    if (dtype == DType::kUndefined) dtype = x.dtype;
    if (x.dtype != DType::kUndefined && x.dtype != dtype) {
      return ctx.Invalid(fmt::format("input {} is {}, input 0 is {}", i, DTypeName(x.dtype), DTypeName(dtype)));
    }
    if (x.has_rank && !out.has_rank) {
      MGE_ASSIGN_OR_RETURN(axis, NormalizeAxis(ctx.attrs().Int("axis"), x.dims.size()));
      out = RankedType(dtype, x.dims.size());
      out.dims[axis] = 0;
    }
  }
  for (int i = 0; out.has_rank && i < ctx.input_count(); ++i) {
    const TensorType& x = ctx.input(i);
    if (!x.has_rank) {
      out.dims[axis] = kUnknownDim;
      continue;
    }
    bool fits = x.dims.size() == out.dims.size();
    for (int64_t d = 0; fits && d < static_cast<int64_t>(x.dims.size()); ++d) {
      if (d != axis) {
        fits = MergeDim(&out.dims[d], x.dims[d]);
      } else if (x.dims[d] == kUnknownDim || out.dims[d] == kUnknownDim) {
        out.dims[d] = kUnknownDim;
      } else {
        fits = CheckedAdd(out.dims[d], x.dims[d], &out.dims[d]);
      }
    }
    if (!fits) {
      return ctx.Invalid(
          fmt::format("input {} of shape {} does not match the others for axis {}", i, ShapeText(x.dims), axis));
    }
  }
  out.dtype = dtype;
  ctx.SetOutput(0, std::move(out));
  return absl::OkStatus();
}

absl::Status Eval(EvalContext& ctx) {
  const Tensor& first = ctx.input(0);
  MGE_ASSIGN_OR_RETURN(int64_t axis, NormalizeAxis(ctx.attrs().Int("axis"), first.rank()));
  Shape shape = first.shape();
  for (int i = 1; i < ctx.input_count(); ++i) {
    const Shape& other = ctx.input(i).shape();
    bool fits = other.size() == shape.size();
    for (int64_t d = 0; fits && d < first.rank(); ++d) {
      fits = d == axis ? CheckedAdd(shape[d], other[d], &shape[d]) : other[d] == shape[d];
    }
    if (!fits) {
      return ctx.Invalid(fmt::format("input {} of shape {} does not match {} for axis {}", i, ShapeText(other),
                                     ShapeText(first.shape()), axis));
    }
  }
  MGE_ASSIGN_OR_RETURN(Tensor * y, ctx.Output(0, first.dtype(), shape));
  if (y->elements() == 0) return absl::OkStatus();
  int64_t outer = Product(shape, 0, axis);
  int64_t row = Product(shape, axis, shape.size());
  int64_t at = 0;
  for (int i = 0; i < ctx.input_count(); ++i) {
    const Tensor& x = ctx.input(i);
    int64_t part = Product(x.shape(), axis, x.rank());
    for (int64_t o = 0; o < outer; ++o) CopyElements(x, o * part, *y, o * row + at, part);
    at += part;
  }
  return absl::OkStatus();
}

absl::Status Upgrade(Graph&, Node& node) {
  if (node.version < 4 && !node.attrs.Has("axis")) node.attrs.Set("axis", int64_t{1});
  return absl::OkStatus();
}

absl::Status Gradient(GradientContext& g) {
  const int64_t axis = g.attrs().Int("axis");
  std::vector<ValueId> sizes;
  for (int i = 0; i < g.input_count(); ++i) {
    Attributes along = IntAttribute("start", axis);
    if (axis != -1) along.Set("end", axis + 1);
    sizes.push_back(g.Add("Shape", {g.x(i).id()}, std::move(along)));
  }
  const ValueId split = g.Add("Concat", sizes, IntAttribute("axis", 0));
  const std::vector<ValueId> parts = g.Add("Split", {g.dy().id(), split}, sizes.size(), IntAttribute("axis", axis));
  for (int i = 0; i < g.input_count(); ++i) MGE_RETURN_IF_ERROR(g.Set(i, {g, parts[static_cast<size_t>(i)]}));
  return absl::OkStatus();
}

}  // namespace

MGE_OP(concat) = {.name = "Concat",
                  .doc = "Concatenates the inputs along `axis`.",
                  .inputs = {{"inputs", kAnyType, Arity::kVariadic}},
                  .outputs = {{"concat_result"}},
                  .attrs = {AxisOf({"axis", AttrType::kInt, Presence::kRequired, "the axis"})},
                  .infer = Infer,
                  .eval = Eval,
                  .upgrade = Upgrade,
                  .gradient = Gradient,
                  .examples = {"(T[3,5], T[3,2]) {axis=1}", "(T[1,3], T[4,3], T[2,3]) {axis=0}", "(T[3,5], =0) {axis=1}",
                               "(T[70001], T[3]) {axis=0}", "(T[130,257], T[130,390]) {axis=1}"}};

}  // namespace mge::op_concat
