// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <vector>

#include "core/ops/families/movement.h"
#include "core/ops/gradient.h"
#include "core/ops/op_helpers.h"

namespace mge::op_one_hot {
namespace {

// Returns the one element of `depth`, which may have any numeric type.
absl::StatusOr<int64_t> DepthOf(const Tensor& t) {
  absl::StatusOr<int64_t> depth = BadNode(fmt::format("depth has shape {}; it must have one element", ShapeText(t.shape())));
  if (t.elements() != 1) return depth;
  DispatchNumeric(t.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    double value = static_cast<double>(static_cast<Compute<T>>(t.Data<T>()[0]));
    if (value >= 0 && value < 0x1p62) {
      depth = static_cast<int64_t>(value);
    } else {
      depth = BadNode(fmt::format("depth is {}; it must not be negative", value));
    }
  });
  return depth;
}

absl::Status Infer(InferContext& ctx) {
  const TensorType& indices = ctx.input(0);
  DType dtype = ctx.input(2).dtype;
  int64_t depth = kUnknownDim;
  if (const Tensor* t = ctx.constant(1)) {
    MGE_ASSIGN_OR_RETURN(depth, DepthOf(*t));
  }
  if (ctx.input(2).has_rank) MGE_RETURN_IF_ERROR(RequireShape("values", ctx.input(2).dims, Shape{2}));
  if (!indices.has_rank) {
    ctx.SetOutput(0, UnrankedType(dtype));
    return absl::OkStatus();
  }
  MGE_ASSIGN_OR_RETURN(int64_t axis, NormalizeAxis(ctx.attrs().Int("axis"), indices.dims.size() + 1));
  Shape dims = indices.dims;
  dims.insert(dims.begin() + axis, depth);
  ctx.SetOutput(0, MakeType(dtype, std::move(dims)));
  return absl::OkStatus();
}

absl::Status Eval(EvalContext& ctx) {
  const Tensor& indices = ctx.input(0);
  const Tensor& values = ctx.input(2);
  MGE_ASSIGN_OR_RETURN(int64_t depth, DepthOf(ctx.input(1)));
  MGE_RETURN_IF_ERROR(RequireShape("values", values.shape(), Shape{2}));
  MGE_ASSIGN_OR_RETURN(int64_t axis, NormalizeAxis(ctx.attrs().Int("axis"), indices.rank() + 1));
  Shape shape = indices.shape();
  shape.insert(shape.begin() + axis, depth);
  MGE_ASSIGN_OR_RETURN(Tensor * y, ctx.Output(0, values.dtype(), std::move(shape)));
  if (y->elements() == 0) return absl::OkStatus();
  Tensor off = values.Within(values.dtype(), {}, values.data());
  Fill(*y, &off);
  const bool wraps = ctx.attrs().Int("_only_positive") == 0;
  const int64_t inner = Product(indices.shape(), axis, indices.rank());
  DispatchNumeric(indices.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    auto in = indices.Data<T>();
    for (int64_t i = 0; i < indices.elements(); ++i) {
      // A fractional index is truncated. An index out of range leaves all its values "off".
      double wide = std::trunc(static_cast<double>(static_cast<Compute<T>>(in[i])));
      if (!(wide >= (wraps ? -static_cast<double>(depth) : 0.0) && wide < static_cast<double>(depth))) continue;
      int64_t at = static_cast<int64_t>(wide);
      if (at < 0) at += depth;
      CopyElements(values, 1, *y, (i / inner * depth + at) * inner + i % inner, 1);
    }
  });
  return absl::OkStatus();
}

absl::Status Upgrade(Graph&, Node& node) {
  // Before operator set 11 negative indices were out of range.
  if (node.version < 11) node.attrs.Set("_only_positive", int64_t{1});
  return absl::OkStatus();
}

// Each of the two values gets the gradients of the elements that are copies of it.
absl::Status Gradient(GradientContext& g) {
  for (int i : {0, 1}) {
    if (g.wants(i)) MGE_RETURN_IF_ERROR(g.Set(i, {g, g.Add("Sub", {g.x(i).id(), g.x(i).id()})}));  // no small change matters
  }
  if (!g.wants(2)) return absl::OkStatus();
  std::vector<ValueId> sums;
  for (int which : {0, 1}) {  // off, on
    const ValueId mask = g.Cast(g.Integers({1 - which, which}), DType::kI64, g.type(2).dtype);
    const Term copies = g.Of("OneHot", {g.x(0).id(), g.x(1).id(), mask}, g.attrs());
    sums.push_back(g.Reshape(g.SumAll(g.dy() * copies).id(), {1}));
  }
  return g.Set(2, g.Of("Concat", sums, IntAttribute("axis", 0)));
}

}  // namespace

MGE_OP(one_hot) = {.name = "OneHot",
                   .doc = "Adds a dimension of size `depth` that is \"on\" at the index and \"off\" elsewhere.",
                   .inputs = {{"indices", kNumeric}, {"depth", kNumeric}, {"values"}},
                   .outputs = {{"output"}},
                   .attrs = {AxisOf({"axis", -1, "the axis"}, 0, 1), {"_only_positive", AttrType::kInt}},
                   .infer = Infer,
                   .eval = Eval,
                   .upgrade = Upgrade,
                   .gradient = Gradient,
                   .fixed_inputs = 0b111,
                   .traits = kNoFold,
                   .since = 9,
                   .examples = {"(int64[3,2]<0,1,4,2,3,-1>, int64[]<5>, T[2])"}};

}  // namespace mge::op_one_hot
