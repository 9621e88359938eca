// SPDX-License-Identifier: Apache-2.0
#include <numeric>

#include "core/ops/families/movement.h"
#include "core/ops/function_body.h"
#include "core/ops/gradient.h"
#include "core/ops/op_helpers.h"

namespace mge::op_slice {
namespace {

struct Range {
  int64_t start = 0;
  int64_t step = 1;
  int64_t count = 0;
};

// Resolves one dimension by Python's rules: negative positions count from the end, positions out of range are clamped.
// Cannot overflow.
absl::StatusOr<Range> Resolve(int64_t size, int64_t start, int64_t end, int64_t step) {
  if (step == 0) return BadNode("a step is 0");
  // A step of the whole size selects one element, as every longer step does.
  int64_t longest = std::max<int64_t>(size, 1);
  Range r{.step = std::clamp(step, -longest, longest)};
  if (start < 0) start += size;
  if (end < 0) end += size;
  if (step > 0) {
    r.start = std::clamp<int64_t>(start, 0, size);
    end = std::clamp<int64_t>(end, 0, size);
    if (end > r.start) r.count = (end - r.start - 1) / r.step + 1;
  } else {
    r.start = std::clamp<int64_t>(start, size ? 0 : -1, size - 1);
    end = std::clamp<int64_t>(end, -1, size - 1);
    if (end < r.start) r.count = (r.start - end - 1) / -r.step + 1;
  }
  return r;
}

// Returns the ranges of all dimensions. The count is unknown if the size is.
absl::StatusOr<std::vector<Range>> Ranges(std::span<const int64_t> shape, const Ints& starts, const Ints& ends,
                                          /*nullable*/ const Ints* axes, /*nullable*/ const Ints* steps) {
  std::vector<Range> ranges(shape.size());
  for (size_t i = 0; i < shape.size(); ++i) ranges[i].count = shape[i];
  if (ends.size() != starts.size() || (axes && axes->size() != starts.size()) || (steps && steps->size() != starts.size()) ||
      (!axes && starts.size() > shape.size())) {
    return BadNode(fmt::format("starts, ends, axes and steps of {}, {}, {} and {} elements do not match", starts.size(),
                               ends.size(), axes ? axes->size() : starts.size(), steps ? steps->size() : starts.size()));
  }
  std::vector<bool> seen(shape.size(), false);
  for (size_t i = 0; i < starts.size(); ++i) {
    MGE_ASSIGN_OR_RETURN(int64_t axis, NormalizeAxis(axes ? (*axes)[i] : i, shape.size()));
    if (seen[axis]) return BadNode(fmt::format("axis {} is given twice", axis));
    seen[axis] = true;
    int64_t step = steps ? (*steps)[i] : 1;
    MGE_ASSIGN_OR_RETURN(ranges[axis], Resolve(std::max<int64_t>(shape[axis], 0), starts[i], ends[i], step));
    if (shape[axis] == kUnknownDim) ranges[axis].count = kUnknownDim;
  }
  return ranges;
}

absl::Status Infer(InferContext& ctx) {
  const TensorType& x = ctx.input(0);
  if (!x.has_rank) {
    ctx.SetOutput(0, UnrankedType(x.dtype));
    return absl::OkStatus();
  }
  auto starts = KnownInts(ctx, 1), ends = KnownInts(ctx, 2), axes = KnownInts(ctx, 3), steps = KnownInts(ctx, 4);
  Shape dims = x.dims;
  if (starts && ends && (axes || !ctx.has_input(3)) && (steps || !ctx.has_input(4))) {
    MGE_ASSIGN_OR_RETURN(auto ranges, Ranges(x.dims, *starts, *ends, axes ? &*axes : nullptr, steps ? &*steps : nullptr));
    for (size_t i = 0; i < dims.size(); ++i) dims[i] = ranges[i].count;
  } else if (axes) {
    for (int64_t axis : *axes) {
      MGE_ASSIGN_OR_RETURN(int64_t a, NormalizeAxis(axis, dims.size()));
      dims[a] = kUnknownDim;
    }
  } else {
    std::fill(dims.begin(), dims.end(), kUnknownDim);
  }
  ctx.SetOutput(0, MakeType(x.dtype, std::move(dims)));
  return absl::OkStatus();
}

absl::Status Eval(EvalContext& ctx) {
  const Tensor& x = ctx.input(0);
  Ints lists[4];
  for (int i = 0; i < 4; ++i) {
    if (ctx.has_input(i + 1)) {
      MGE_ASSIGN_OR_RETURN(lists[i], IntsInput(ctx, i + 1));
    }
  }
  MGE_ASSIGN_OR_RETURN(auto ranges, Ranges(x.shape(), lists[0], lists[1], ctx.has_input(3) ? &lists[2] : nullptr,
                                           ctx.has_input(4) ? &lists[3] : nullptr));
  Shape strides = Strides(x.shape());
  Shape shape;
  int64_t offset = 0;
  for (size_t i = 0; i < ranges.size(); ++i) {
    shape.push_back(ranges[i].count);
    if (ranges[i].count > 0) offset += ranges[i].start * strides[i];
    strides[i] *= ranges[i].step;
  }
  MGE_ASSIGN_OR_RETURN(Tensor * y, ctx.Output(0, x.dtype(), std::move(shape)));
  CopyStrided(x, offset, strides, *y);
  return absl::OkStatus();
}

absl::Status Upgrade(Graph& graph, Node& node) {
  if (node.version < 10) {
    MoveAttributeToInput(graph, node, "starts", 1);
    MoveAttributeToInput(graph, node, "ends", 2);
    MoveAttributeToInput(graph, node, "axes", 3);
  }
  return absl::OkStatus();
}

// Pads the gradient with zeros on both sides of each sliced axis. The sizes are computed from shapes.
absl::Status Gradient(GradientContext& g) {
  MGE_ASSIGN_OR_RETURN(const int64_t rank, g.Rank(0));
  if (g.has_input(4)) {
    const Tensor* steps = g.constant(4);
    bool ones = steps && kIndex.Contains(steps->dtype());
    if (ones) {
      DispatchNumeric(steps->dtype(), [&](auto tag) {
        using T = typename decltype(tag)::type;
        ones = std::ranges::all_of(steps->Data<T>(), [](T step) { return step == T(1); });
      });
    }
    if (!ones) return g.SetByReplacement();
  }
  auto wide = [&](int i) { return g.CastTo(g.x(i), DType::kI64); };
  Ints all(static_cast<size_t>(rank));
  std::iota(all.begin(), all.end(), 0);
  const Term axes = g.has_input(3) ? wide(3) : Term(g, g.Integers(all)), starts = wide(1);
  const Term size = Binary("Gather", {g, g.ShapeOf(g.x())}, axes), kept = Binary("Gather", {g, g.ShapeOf(g.dy())}, axes);
  const Term zero(g, g.Constant(Tensor::Scalar<int64_t>(0)));
  const Term from_start = g.Where(starts < zero, starts + size, starts);
  const Term before = Binary("Min", Binary("Max", from_start, zero), size);
  const Term pads = g.Of("Concat", {before.id(), (size - before - kept).id()}, IntAttribute("axis", 0));
  return g.Set(0, g.Of("Pad", {g.dy().id(), pads.id(), kNone, axes.id()}));
}

// Cuts each axis with a positive step into blocks of that size and keeps their first elements. Selects the elements of an axis
// with a negative step.
absl::StatusOr<bool> GradientBody(FunctionBody& f) {
  if (!f.IsStatic() || !f.has_input(4)) return false;
  Ints lists[4];
  for (int i = 0; i < 4; ++i) {
    if (f.has_input(i + 1) && !f.constant(i + 1)) return false;
    if (f.has_input(i + 1)) lists[i] = f.constant(i + 1)->ToInts();
  }
  Shape dims = f.dims(0);
  MGE_ASSIGN_OR_RETURN(const std::vector<Range> ranges,
                       Ranges(dims, lists[0], lists[1], f.has_input(3) ? &lists[2] : nullptr, &lists[3]));
  ValueId x = f.input(0);
  for (size_t d = 0; d < dims.size(); ++d) {
    const Range& r = ranges[d];
    const auto axis = static_cast<int64_t>(d);
    if (r.step < 0 && r.count > 0) {
      std::vector<int64_t> sources;
      for (int64_t k = 0; k < r.count; ++k) sources.push_back(r.start + k * r.step);
      x = f.Add("Gather", {x, f.Integers(sources)}, IntAttribute("axis", axis));
    } else if (r.count != dims[d]) {
      const int64_t start = r.count == 0 ? 0 : r.start, end = r.count == 0 ? 0 : start + (r.count - 1) * r.step + 1;
      x = f.Add("Slice", {x, f.Integers({start}), f.Integers({end}), f.Integers({axis})});
    }
    dims[d] = r.count;
    if (r.step <= 1 || r.count == 0) continue;
    const int64_t inner = Elements(std::span<const int64_t>(dims).subspan(d + 1)),
                  outer = Elements(std::span(dims).first(d));
    x = f.Add("Pad", {x, f.Integers({0, r.step - 1}), kNone, f.Integers({axis})});
    x = f.Reshape(x, {outer, r.count, r.step, inner});
    x = f.Reshape(f.Add("Slice", {x, f.Integers({0}), f.Integers({1}), f.Integers({2})}), dims);
  }
  f.Result(0, "Identity", {x});
  return true;
}

}  // namespace

MGE_OP(slice) = {.name = "Slice",
                 .doc = "x[start:end:step] along the given axes, with Python's rules.",
                 .inputs = {{"data"},
                            {"starts", kIndex},
                            {"ends", kIndex},
                            {"axes", kIndex, Arity::kOptional},
                            {"steps", kIndex, Arity::kOptional}},
                 .outputs = {{"output"}},
                 .infer = Infer,
                 .eval = Eval,
                 .upgrade = Upgrade,
                 .gradient = Gradient,
                 .gradient_body = GradientBody,
                 .examples = {"(T[7,9], int64[2]<1,2>, int64[2]<6,9>)",
                              "(T[7,9], int64[2]<6,8>, int64[2]<0,-99>, int64[2]<0,1>, int64[2]<-2,-3>)",
                              "(T[2,7,8,3], int64[2]<1,0>, int64[2]<7,8>, int64[2]<1,2>, int64[2]<2,3>)"}};

}  // namespace mge::op_slice
