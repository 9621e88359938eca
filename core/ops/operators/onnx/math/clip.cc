// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <limits>

#include "core/ops/families/convert.h"
#include "core/ops/families/movement.h"
#include "core/ops/gradient.h"
#include "core/ops/op_helpers.h"

namespace mge::op_clip {
namespace {

absl::Status Infer(InferContext& ctx) {
  for (int i = 1; i < ctx.input_count(); ++i) {
    if (!ctx.has_input(i) || !ctx.input(i).has_rank) continue;
    if (!ctx.input(i).dims.empty() && ctx.input(i).dims != Shape{1} && ctx.input(i).dims != Shape{kUnknownDim}) {
      return ctx.Invalid(fmt::format("input '{}' has shape {}, expected one element", i == 1 ? "min" : "max",
                                     ShapeText(ctx.input(i).dims)));
    }
  }
  return SameTypeAsFirst(ctx);
}

template <typename T>
absl::StatusOr<T> Limit(EvalContext& ctx, int i, T fallback) {
  if (!ctx.has_input(i)) return fallback;
  const Tensor& limit = ctx.input(i);
  if (limit.elements() != 1) return ctx.Invalid("a limit must have one element");
  T out = fallback;
  // Before operator set 11 the limits were attributes. They are float32 for every type of X.
  DispatchNumeric(limit.dtype(), [&](auto tag) { out = Convert<T>(limit.Data<typename decltype(tag)::type>()[0]); });
  return out;
}

template <typename T>
absl::Status EvalTyped(EvalContext& ctx, const Tensor& x) {
  using C = Compute<T>;
  T none_low = kIsFloating<T> ? T(-std::numeric_limits<C>::infinity()) : T(std::numeric_limits<C>::lowest());
  T none_high = kIsFloating<T> ? T(std::numeric_limits<C>::infinity()) : T(std::numeric_limits<C>::max());
  MGE_ASSIGN_OR_RETURN(C low, Limit<T>(ctx, 1, none_low));
  MGE_ASSIGN_OR_RETURN(C high, Limit<T>(ctx, 2, none_high));
  MGE_ASSIGN_OR_RETURN(Tensor * y, ctx.Output(0, x.dtype(), x.shape()));
  const bool undefined = std::isnan(static_cast<double>(low)) || std::isnan(static_cast<double>(high));
  MapUnary<T>(x, *y, [&](C v) {
    if (undefined) return std::numeric_limits<C>::quiet_NaN();
    C raised = v < low ? low : v;
    return raised > high ? high : raised;  // if the limits cross, max is used
  });
  return absl::OkStatus();
}

absl::Status Eval(EvalContext& ctx) {
  absl::Status status;
  DispatchNumeric(ctx.input(0).dtype(),
                  [&](auto tag) { status = EvalTyped<typename decltype(tag)::type>(ctx, ctx.input(0)); });
  return status;
}

absl::Status Upgrade(Graph& graph, Node& node) {
  if (node.version >= 11) return absl::OkStatus();
  node.attrs.Remove("consumed_inputs");
  MoveAttributeToInput(graph, node, "min", 1);
  MoveAttributeToInput(graph, node, "max", 2);
  return absl::OkStatus();
}

absl::Status Gradient(GradientContext& g) {
  MGE_RETURN_IF_ERROR(g.Set(0, g.Where(Binary("Equal", g.x(), g.y()).id(), g.dy(), g.Number(0))));
  // A limit gets the gradients of the elements that it replaces. If the limits cross, those are the upper one's.
  auto set = [&](int i, ValueId replaced) {
    if (g.type(i).dtype != g.type(0).dtype) return g.Unsupported("a limit of another type than the input");
    return g.Set(i, g.ReshapeLike(g.SumAll(g.Where(replaced, g.dy(), g.Number(0))), g.x(i)));
  };
  const Term raised = g.has_input(1) ? Binary("Max", g.x(), g.x(1)) : g.x();
  if (g.wants(1)) {
    const ValueId below = g.x() < g.x(1);
    MGE_RETURN_IF_ERROR(
        set(1, g.has_input(2) ? g.Add("And", {below, g.Add("LessOrEqual", {raised.id(), g.x(2).id()})}) : below));
  }
  return g.wants(2) ? set(2, raised > g.x(2)) : absl::OkStatus();
}

}  // namespace

MGE_OP(clip) = {
    .name = "Clip",
    .doc = "min(max(x, lowest), highest). Absent limits are ignored. If a limit is NaN, all results are NaN.",
    .inputs = {{"input", kNumeric}, {"min", kNumeric, Arity::kOptional}, {"max", kNumeric, Arity::kOptional}},
    .outputs = {{"output"}},
    .infer = Infer,
    .eval = Eval,
    .upgrade = Upgrade,
    .gradient = Gradient,
    .fixed_inputs = 0b110,
    .in_place = {{0, 0}},
    .traits = kElementwise,
    .examples = {"(T[3,37], T[]<-1>, T[]<1>)", "(T[17], T[]<1>, T[]<3>)", "(T[70001], T[]<1>, T[]<3>)",
                 "(T[67]@special, T[]<1>, T[]<3>)"},
};

}  // namespace mge::op_clip
