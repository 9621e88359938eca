// SPDX-License-Identifier: Apache-2.0
#include "core/ops/families/movement.h"
#include "core/ops/gradient.h"
#include "core/ops/op_helpers.h"

namespace mge::op_expand {
namespace {

absl::Status Infer(InferContext& ctx) {
  const TensorType& x = ctx.input(0);
  auto wanted = KnownInts(ctx, 1);
  const TensorType& shape = ctx.input(1);
  if (x.has_rank && wanted) {
    MGE_ASSIGN_OR_RETURN(Shape target, CheckedShape(*wanted));
    MGE_ASSIGN_OR_RETURN(Shape out, BroadcastShapes(x.dims, target));
    ctx.SetOutput(0, MakeType(x.dtype, std::move(out)));
  } else if (x.has_rank && shape.has_rank && shape.dims.size() == 1 && shape.dims[0] >= 0 && shape.dims[0] <= kMaxRank) {
    ctx.SetOutput(0, RankedType(x.dtype, std::max<int64_t>(x.dims.size(), shape.dims[0])));
  } else {
    ctx.SetOutput(0, UnrankedType(x.dtype));
  }
  return absl::OkStatus();
}

absl::Status Eval(EvalContext& ctx) {
  const Tensor& x = ctx.input(0);
  MGE_ASSIGN_OR_RETURN(Ints wanted, IntsInput(ctx, 1));
  MGE_ASSIGN_OR_RETURN(Shape target, CheckedShape(wanted));
  MGE_ASSIGN_OR_RETURN(Shape shape, BroadcastShapes(x.shape(), target));
  MGE_ASSIGN_OR_RETURN(Tensor * y, ctx.Output(0, x.dtype(), shape));
  CopyStrided(x, 0, BroadcastStrides(x.shape(), shape), *y);
  return absl::OkStatus();
}

absl::Status Gradient(GradientContext& g) { return g.SetSum(0, g.dy()); }

}  // namespace

MGE_OP(expand) = {.name = "Expand",
                  .doc = "The data broadcast together with a shape.",
                  .inputs = {{"input"}, {"shape", {DType::kI64}}},
                  .outputs = {{"output"}},
                  .infer = Infer,
                  .eval = Eval,
                  .gradient = Gradient,
                  .traits = kNoFold,
                  .since = 8,
                  .examples = {"(T[3,1], int64[3]<2,3,5>)"}};

}  // namespace mge::op_expand
