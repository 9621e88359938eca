// SPDX-License-Identifier: Apache-2.0
#include "core/ops/families/binary.h"
#include "core/ops/families/broadcast.h"
#include "core/ops/gradient.h"

namespace mge::op_p_relu {
namespace {

// Returns the slope's shape aligned to X. The slope may be broadcast to X, but not X to the slope. Before operator set
// 7 a slope of one dimension belonged to axis 1.
absl::StatusOr<Shape> SlopeShape(const Node& node, const Shape& slope, const Shape& x) {
  Shape aligned = slope;
  if (node.attrs.Int("_per_channel") != 0 && slope.size() == 1 && x.size() > 2) aligned.resize(x.size() - 1, 1);
  if (FitsBroadcastTo(aligned, x)) return aligned;
  return Fail(errors::kInvalidNode,
              fmt::format("PRelu: slope {} cannot be broadcast to X {}", ShapeText(slope), ShapeText(x)),
              {.where = NodePlace(node)});
}

absl::Status Infer(InferContext& ctx) {
  const TensorType &x = ctx.input(0), &slope = ctx.input(1);
  if (x.dtype != DType::kUndefined && slope.dtype != DType::kUndefined && x.dtype != slope.dtype) {
    return ctx.Invalid(fmt::format("X has type {}, slope {}", DTypeName(x.dtype), DTypeName(slope.dtype)));
  }
  if (x.has_rank && slope.has_rank) MGE_RETURN_IF_ERROR(SlopeShape(ctx.node(), slope.dims, x.dims).status());
  return SameTypeAsFirst(ctx);
}

absl::Status Eval(EvalContext& ctx) {
  const Tensor& x = ctx.input(0);
  if (x.dtype() != ctx.input(1).dtype()) return ctx.Invalid("X and slope have different types");
  MGE_ASSIGN_OR_RETURN(Shape shape, SlopeShape(ctx.node(), ctx.input(1).shape(), x.shape()));
  Tensor slope = ctx.input(1).Reshaped(std::move(shape));
  MGE_ASSIGN_OR_RETURN(Tensor * y, ctx.Output(0, x.dtype(), x.shape()));
  DispatchNumeric(x.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    BroadcastBinary<T, T>(x, slope, *y, [](T v, T s) {
      Compute<T> a = static_cast<Compute<T>>(v), b = static_cast<Compute<T>>(s);
      return a < 0 ? Wrapping(a, b, [](auto p, auto q) { return p * q; }) : a;
    });
  });
  return absl::OkStatus();
}

absl::Status Upgrade(Graph&, Node& node) {
  if (node.version >= 7) return absl::OkStatus();
  node.attrs.Remove("consumed_inputs");
  node.attrs.Set("_per_channel", int64_t{1});
  return absl::OkStatus();
}

constexpr TypeSet kTypes = kFloating | TypeSet{DType::kI32, DType::kI64, DType::kU32, DType::kU64};

absl::Status Gradient(GradientContext& g) {
  MGE_RETURN_IF_ERROR(g.Set(0, g.Where(g.x() > 0, g.dy(), g.dy() * g.x(1))));
  return g.SetSum(1, g.Where(g.x() > 0, g.Number(0), g.dy() * g.x(0)));
}

}  // namespace

MGE_OP(p_relu) = {
    .name = "PRelu",
    .doc = "x if it is not negative, else slope * x. The slope is broadcast to X.",
    .inputs = {{"X", kTypes}, {"slope", kTypes}},
    .outputs = {{"Y"}},
    .attrs = {{"_per_channel", AttrType::kInt}},
    .infer = Infer,
    .eval = Eval,
    .upgrade = Upgrade,
    .gradient = Gradient,
    .in_place = {{0, 0}},
    .traits = kElementwise,
    .examples = {"(T[2,3,7], T[7])", "(T[1,5,3,3], T[5,1,1])", "(T[70001], T[70001])", "(T[67]@special, T[1])"},
};

}  // namespace mge::op_p_relu
