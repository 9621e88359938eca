// SPDX-License-Identifier: Apache-2.0
#include "core/ops/families/binary.h"
#include "core/ops/families/movement.h"
#include "core/ops/gradient.h"
#include "core/ops/infer_checks.h"

namespace mge::op_where {
namespace {

absl::Status Infer(InferContext& ctx) {
  const TensorType &c = ctx.input(0), &x = ctx.input(1), &y = ctx.input(2);
  if (x.dtype != DType::kUndefined && y.dtype != DType::kUndefined && x.dtype != y.dtype) {
    return ctx.Invalid(fmt::format("X has type {}, Y {}", DTypeName(x.dtype), DTypeName(y.dtype)));
  }
  TensorType out = UnrankedType(x.dtype != DType::kUndefined ? x.dtype : y.dtype);
  if (c.has_rank && x.has_rank && y.has_rank) {
    MGE_ASSIGN_OR_RETURN(Shape both, BroadcastShapes(x.dims, y.dims));
    MGE_ASSIGN_OR_RETURN(out.dims, BroadcastShapes(both, c.dims));
    out.has_rank = true;
  }
  ctx.SetOutput(0, std::move(out));
  return absl::OkStatus();
}

absl::Status Eval(EvalContext& ctx) {
  const Tensor &c = ctx.input(0), &x = ctx.input(1), &y = ctx.input(2);
  if (x.dtype() != y.dtype()) return ctx.Invalid("X and Y have different types");
  MGE_ASSIGN_OR_RETURN(Shape both, BroadcastShapes(x.shape(), y.shape()));
  MGE_ASSIGN_OR_RETURN(Shape shape, BroadcastShapes(both, c.shape()));
  MGE_ASSIGN_OR_RETURN(Tensor * z, ctx.Output(0, x.dtype(), std::move(shape)));
  std::span<const bool> condition = c.Data<bool>();
  DispatchCopy(x.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    auto out = z->MutableData<T>();
    // Copies in two passes over two operands each, instead of one pass over three: first the elements of Y, then those
    // of X.
    ForBroadcast(c.shape(), y.shape(), z->shape(), [&](int64_t i, int64_t at, int64_t from) {
      if (!condition[at]) out[i] = y.Data<T>()[from];
    });
    ForBroadcast(c.shape(), x.shape(), z->shape(), [&](int64_t i, int64_t at, int64_t from) {
      if (condition[at]) out[i] = x.Data<T>()[from];
    });
  });
  return absl::OkStatus();
}

absl::Status Gradient(GradientContext& g) {
  MGE_RETURN_IF_ERROR(g.SetSum(1, g.Where(g.x(0).id(), g.dy(), g.Number(0))));
  return g.SetSum(2, g.Where(g.x(0).id(), g.Number(0), g.dy()));
}

}  // namespace

MGE_OP(where) = {
    .name = "Where",
    .doc = "X if the condition is true, else Y, with broadcasting.",
    .inputs = {{"condition", kBoolean}, {"X"}, {"Y"}},
    .outputs = {{"output"}},
    .infer = Infer,
    .eval = Eval,
    .gradient = Gradient,
    .in_place = {{0, 1}, {0, 2}},
    .traits = kElementwise,
    .since = 9,
    .examples = {"(bool[3,7], T[3,7], T[7])", "(bool[5,1], T[3], T[5,3])", "(bool[70001], T[70001], T[70001])",
                 "(bool[67], T[67]@special, T[67]@special)", "(bool[3,7], T[3,7], =1)"},
};

}  // namespace mge::op_where
