// SPDX-License-Identifier: Apache-2.0
#include "core/ops/families/sigmoid.h"
#include "core/ops/gradient.h"
#include "core/ops/infer_checks.h"
#include "core/ops/op_helpers.h"

namespace mge::op_swi_glu {
namespace {

absl::Status Infer(InferContext& ctx) {
  MGE_RETURN_IF_ERROR(SameElementTypes(ctx, {0, 1}));
  const TensorType &a = ctx.input(0), &b = ctx.input(1);
  if (a.has_rank && b.has_rank) MGE_RETURN_IF_ERROR(RequireShape("B", b.dims, a.dims));
  return SameTypeAsFirst(ctx);
}

absl::Status Eval(EvalContext& ctx) {
  const Tensor &a = ctx.input(0), &b = ctx.input(1);
  MGE_RETURN_IF_ERROR(RequireShape("B", b.shape(), a.shape()));
  const float alpha = ctx.attrs().Float("alpha");
  MGE_ASSIGN_OR_RETURN(Tensor * y, ctx.Output(0, a.dtype(), a.shape()));
  DispatchFloating(a.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    using C = Compute<T>;
    BroadcastBinary<T, T>(a, b, *y, [=](T gate, T x) { return Swish(static_cast<C>(gate), alpha) * static_cast<C>(x); });
  });
  return absl::OkStatus();
}

}  // namespace

MGE_OP(swi_glu) = {
    .name = "SwiGLU",
    .doc = "A * sigmoid(alpha * A) * B. Both inputs have the same shape.",
    .inputs = {{"A", kFloating}, {"B", kFloating}},
    .outputs = {{"Y"}},
    .attrs = {{"alpha", 1.0f, "the factor inside the sigmoid"}},
    .infer = Infer,
    .eval = Eval,
    .gradient = ReplacementGradient,
    .in_place = {{0, 0}, {0, 1}},
    .traits = kElementwise,
    .since = 28,
    .examples = {"(T[3,37], T[3,37])", "(T[41], T[41]) {alpha=1.702}", "(T[70001], T[70001])"},
};

}  // namespace mge::op_swi_glu
