// SPDX-License-Identifier: Apache-2.0
#include "core/ops/families/arg_reduce.h"
#include "core/ops/families/normalization.h"
#include "core/ops/function_body.h"
#include "core/ops/gradient.h"

namespace mge::op_lp_normalization {
namespace {

absl::Status Check(const Node& node, int64_t rank) {
  int64_t p = node.attrs.Int("p");
  if (p != 1 && p != 2) return Fail(errors::kInvalidNode, fmt::format("p is {}, expected 1 or 2", p));
  return NormalizeAxis(node.attrs.Int("axis"), rank).status();
}

absl::Status Infer(InferContext& ctx) {
  if (ctx.input(0).has_rank) {
    MGE_RETURN_IF_ERROR(Check(ctx.node(), static_cast<int64_t>(ctx.input(0).dims.size())));
  }
  return SameTypeAsFirst(ctx);
}

absl::StatusOr<bool> Body(FunctionBody& f) {
  const Ints axes = {f.attrs().Int("axis")};
  const bool squares = f.attrs().Int("p") == 2;
  if (f.AppliesInFloat32()) return true;
  Term sum = f.Sum(squares ? f.x() * f.x() : Unary("Abs", f.x()), axes);
  sum = f.Where(Binary("Equal", sum, f.Number(0)).id(), f.Number(1), sum);
  f.Result(0, "Div", {f.input(0), (squares ? Unary("Sqrt", sum) : sum).id()});
  return true;
}

}  // namespace

MGE_OP(lp_normalization) = {
    .name = "LpNormalization",
    .doc = "Divides elements by the L1 or L2 norm along an axis. Zeros stay zeros.",
    .inputs = {{"input", kFloating}},
    .outputs = {{"output"}},
    .attrs = {AxisOf({"axis", -1, "the axis"}), {"p", 2, "the norm"}},
    .infer = Infer,
    .eval = EvalByBody,
    .gradient = ReplacementGradient,
    .body = Body,
    .in_place = {{0, 0}},
    .examples = {"(T[2,5,3])"},
};

}  // namespace mge::op_lp_normalization
