// SPDX-License-Identifier: Apache-2.0
#include "core/ops/families/movement.h"
#include "core/ops/function_body.h"
#include "core/ops/gradient.h"
#include "core/ops/op_helpers.h"

namespace mge::op_pad {
namespace {

enum Mode { kConstant, kReflect, kEdge, kWrap };

absl::StatusOr<Mode> ModeOf(const Attributes& attrs) {
  MGE_ASSIGN_OR_RETURN(int mode, ReadChoice(attrs, "mode", {"constant", "reflect", "edge", "wrap"}));
  return static_cast<Mode>(mode);
}

constexpr int64_t kMaxPad = int64_t{1} << 47;  // larger than any memory; keeps sums of coordinates from overflowing

struct Pads {
  Shape begin, end;
  Shape out;  // -1 if the input's size is unknown
};

absl::StatusOr<Pads> Resolve(std::span<const int64_t> in, const Ints& pads, /*nullable*/ const Ints* axes) {
  int64_t rank = static_cast<int64_t>(in.size());
  Pads p{Shape(rank, 0), Shape(rank, 0), Shape(in.begin(), in.end())};
  size_t count = axes ? axes->size() : in.size();
  if (pads.size() != 2 * count) {
    return BadNode(fmt::format("{} pads for {} axes; each axis requires two", pads.size(), count));
  }
  std::vector<bool> seen(rank, false);
  for (size_t i = 0; i < count; ++i) {
    MGE_ASSIGN_OR_RETURN(int64_t axis, NormalizeAxis(axes ? (*axes)[i] : i, rank));
    if (seen[axis]) return BadNode(fmt::format("axis {} is given twice", axis));
    seen[axis] = true;
    for (int64_t pad : {pads[i], pads[i + count]}) {
      if (pad < -kMaxPad || pad > kMaxPad) return BadNode(fmt::format("pad {} is too large", pad));
    }
    p.begin[axis] = pads[i];
    p.end[axis] = pads[i + count];
    if (in[axis] == kUnknownDim) continue;
    if (__builtin_add_overflow(in[axis], pads[i] + pads[i + count], &p.out[axis]) || p.out[axis] < 0) {
      return BadNode(fmt::format("pads {} and {} are not valid for {} elements along axis {}", pads[i], pads[i + count],
                                 in[axis], axis));
    }
  }
  return p;
}

absl::Status Infer(InferContext& ctx) {
  const TensorType& x = ctx.input(0);
  MGE_RETURN_IF_ERROR(ModeOf(ctx.attrs()).status());
  MGE_RETURN_IF_ERROR(SameElementTypes(ctx, {0, 2}));
  if (!x.has_rank) {
    ctx.SetOutput(0, UnrankedType(x.dtype));
    return absl::OkStatus();
  }
  auto pads = KnownInts(ctx, 1), axes = KnownInts(ctx, 3);
  if (!pads || (ctx.has_input(3) && !axes)) {
    ctx.SetOutput(0, RankedType(x.dtype, x.dims.size()));
    return absl::OkStatus();
  }
  MGE_ASSIGN_OR_RETURN(Pads p, Resolve(x.dims, *pads, axes ? &*axes : nullptr));
  ctx.SetOutput(0, MakeType(x.dtype, std::move(p.out)));
  return absl::OkStatus();
}

// Returns the coordinate of the element that is at `at` of a padded axis of `in` elements. Negative pads remove elements before
// positive ones repeat some. At least one element must remain.
int64_t Source(Mode mode, int64_t at, int64_t in, int64_t begin, int64_t end) {
  const int64_t first = std::max<int64_t>(0, -begin), size = in - std::max<int64_t>(0, -end) - first;
  at -= begin + first;
  if (mode == kEdge) return first + std::clamp<int64_t>(at, 0, size - 1);
  const int64_t period = mode == kWrap ? size : std::max<int64_t>(2 * (size - 1), 1);
  at %= period;
  if (at < 0) at += period;
  return first + (at < size ? at : period - at);
}
// Fails if an axis has elements that repeat none.
absl::Status CheckSources(const Pads& p, std::span<const int64_t> in) {
  for (size_t d = 0; d < in.size(); ++d) {
    if (p.out[d] == 0 || in[d] > std::max<int64_t>(0, -p.begin[d]) + std::max<int64_t>(0, -p.end[d])) continue;
    return BadNode(fmt::format("pads {} and {} of dimension {} of {} leave no elements to repeat", p.begin[d], p.end[d], d,
                               ShapeText(Shape(in.begin(), in.end()))));
  }
  return absl::OkStatus();
}

// Returns the fill value as a tensor of one element of the data's type.
absl::StatusOr<Tensor> FillValue(EvalContext& ctx, DType dtype) {
  if (ctx.has_input(2)) {
    if (ctx.input(2).elements() != 1) {
      return ctx.Invalid(
          fmt::format("constant_value has shape {}; it must have one element", ShapeText(ctx.input(2).shape())));
    }
    return ctx.input(2);
  }
  MGE_ASSIGN_OR_RETURN(Tensor value, Tensor::Create(dtype, {}, ctx.allocator()));
  Fill(value, nullptr);
  DispatchFloating(dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    value.MutableData<T>()[0] = T(ctx.attrs().Float("_value"));
  });
  return value;
}

absl::Status Eval(EvalContext& ctx) {
  const Tensor& x = ctx.input(0);
  MGE_ASSIGN_OR_RETURN(Mode mode, ModeOf(ctx.attrs()));
  MGE_ASSIGN_OR_RETURN(Ints pads, IntsInput(ctx, 1, 2 * kMaxRank));
  Ints axes;
  if (ctx.has_input(3)) {
    MGE_ASSIGN_OR_RETURN(axes, IntsInput(ctx, 3));
  }
  MGE_ASSIGN_OR_RETURN(Pads p, Resolve(x.shape(), pads, ctx.has_input(3) ? &axes : nullptr));
  if (mode != kConstant) MGE_RETURN_IF_ERROR(CheckSources(p, x.shape()));
  MGE_ASSIGN_OR_RETURN(Tensor * y, ctx.Output(0, x.dtype(), p.out));
  if (y->elements() == 0) return absl::OkStatus();
  Shape strides = Strides(x.shape());
  if (mode == kConstant) {
    MGE_ASSIGN_OR_RETURN(Tensor value, FillValue(ctx, x.dtype()));
    Fill(*y, &value);
    Shape out_strides = Strides(p.out);
    Shape extents(x.rank(), 0);
    int64_t from = 0, to = 0;
    for (int64_t d = 0; d < x.rank(); ++d) {
      int64_t first = std::max<int64_t>(0, -p.begin[d]);
      int64_t last = std::min(x.shape()[d], x.shape()[d] + p.end[d]);
      if (first >= last) return absl::OkStatus();
      extents[d] = last - first;
      from += first * strides[d];
      to += (first + p.begin[d]) * out_strides[d];
    }
    CopyRegion(x, from, strides, *y, to, out_strides, extents);
    return absl::OkStatus();
  }
  DispatchCopy(x.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    auto in = x.Data<T>();
    auto out = y->MutableData<T>();
    Shape at(x.rank(), 0);
    int64_t i = 0;
    do {
      int64_t from = 0;
      for (int64_t d = 0; d < x.rank(); ++d) {
        from += Source(mode, at[d], x.shape()[d], p.begin[d], p.end[d]) * strides[d];
      }
      out[i++] = in[from];
    } while (NextIndex(p.out, std::span<int64_t>(at.data(), at.size())));
  });
  return absl::OkStatus();
}

absl::Status Upgrade(Graph& graph, Node& node) {
  if (node.version >= 11) return absl::OkStatus();
  MoveAttributeToInput(graph, node, node.version < 2 ? "paddings" : "pads", 1);
  if (node.attrs.Has("value")) {  // a float for every type of data
    node.attrs.Set("_value", node.attrs.Float("value"));
    node.attrs.Remove("value");
  }
  return absl::OkStatus();
}

absl::Status Gradient(GradientContext& g) {
  const std::string mode = g.attrs().Text("mode");
  if (mode != "constant") {
    if (g.wants(2)) MGE_RETURN_IF_ERROR(g.Set(2, g.Fill(0, g.x(2))));  // no element is a copy of it
    return g.SetByReplacement();
  }
  if (g.wants(2)) {
    std::vector<ValueId> added = {g.Fill(0, g.x()).id(), g.x(1).id(), g.Number(1).id()};
    if (g.has_input(3)) added.push_back(g.x(3).id());
    MGE_RETURN_IF_ERROR(g.Set(2, g.ReshapeLike(g.SumAll(g.dy() * g.Of("Pad", added)), g.x(2))));
  }
  std::vector<ValueId> inputs = {g.dy().id(), Unary("Neg", g.x(1)).id()};
  if (g.has_input(3)) inputs.insert(inputs.end(), {kNone, g.x(3).id()});
  return g.Set(0, g.Of("Pad", inputs));
}

// Selects the elements of each axis.
absl::StatusOr<bool> GradientBody(FunctionBody& f) {
  MGE_ASSIGN_OR_RETURN(const Mode mode, ModeOf(f.attrs()));
  if (mode == kConstant || !f.IsStatic() || !f.constant(1) || (f.has_input(3) && !f.constant(3))) return false;
  const Shape dims = f.dims(0);
  const Ints pads = f.constant(1)->ToInts(), axes = f.has_input(3) ? f.constant(3)->ToInts() : Ints();
  MGE_ASSIGN_OR_RETURN(const Pads p, Resolve(dims, pads, f.has_input(3) ? &axes : nullptr));
  MGE_RETURN_IF_ERROR(CheckSources(p, dims));
  ValueId x = f.input(0);
  for (size_t d = 0; d < dims.size(); ++d) {
    if (p.begin[d] == 0 && p.end[d] == 0) continue;
    std::vector<int64_t> sources;
    for (int64_t at = 0; at < p.out[d]; ++at) sources.push_back(Source(mode, at, dims[d], p.begin[d], p.end[d]));
    x = f.Add("Gather", {x, f.Integers(sources)}, IntAttribute("axis", static_cast<int64_t>(d)));
  }
  f.Result(0, "Identity", {x});
  return true;
}

}  // namespace

MGE_OP(pad) = {.name = "Pad",
               .doc = "Adds elements at the ends of dimensions. Negative pads remove elements.",
               .inputs = {{"data"},
                          {"pads", {DType::kI64}},
                          {"constant_value", kAnyType, Arity::kOptional},
                          {"axes", kIndex, Arity::kOptional}},
               .outputs = {{"output"}},
               .attrs = {{"mode", "constant", "constant, reflect, edge or wrap"}, {"_value", AttrType::kFloat}},
               .infer = Infer,
               .eval = Eval,
               .upgrade = Upgrade,
               .gradient = Gradient,
               .fixed_inputs = 0b100,
               .gradient_body = GradientBody,
               .examples = {"(T[3,5], int64[4]<1,0,2,3>, T[]<1>)", "(T[4,5], int64[4]<1,2,2,1>) {mode=\"reflect\"}",
                            "(T[4,5], int64[4]<1,2,2,1>) {mode=\"edge\"}",
                            "(T[4,5], int64[2]<2,-1>, _, int64[1]<-1>) {mode=\"wrap\"}"}};

}  // namespace mge::op_pad
