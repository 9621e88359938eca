// SPDX-License-Identifier: Apache-2.0
#include "core/ops/families/broadcast.h"
#include "core/ops/function_body.h"

namespace mge::op_sum_to {
namespace {

absl::Status Infer(InferContext& ctx) {
  TensorType type = ctx.input(1);
  type.dtype = ctx.input(0).dtype;
  ctx.SetOutput(0, std::move(type));
  return absl::OkStatus();
}

absl::StatusOr<bool> Body(FunctionBody& f) {
  if (!f.IsStatic()) return false;
  const Shape from = f.dims(0), to = f.dims(1);
  if (!FitsBroadcastTo(to, from)) {
    return f.Invalid(fmt::format("shape {} cannot be broadcast to {}", ShapeText(to), ShapeText(from)));
  }
  const size_t added = from.size() - to.size();
  Ints axes;
  for (size_t i = 0; i < from.size(); ++i) {
    if (i < added || to[i - added] != from[i]) axes.push_back(static_cast<int64_t>(i));
  }
  if (axes.empty()) {
    f.Result(0, "Identity", {f.input(0)});
  } else {
    const ValueId sum = f.Add("ReduceSum", {f.input(0), f.Integers(axes)});
    f.Result(0, "Reshape", {sum, f.Integers(to)}, IntAttribute("allowzero", 1));
  }
  return true;
}

}  // namespace

MGE_OP(sum_to) = {
    .name = "SumTo",
    .domain = "mge",
    .doc =
        "Sums x over the dimensions in which `like` would be broadcast to the shape of x. The result has the shape of "
        "`like`.",
    .inputs = {{"x", kFloating}, {"like"}},
    .outputs = {{"Y"}},
    .infer = Infer,
    .eval = EvalByBody,
    .body = Body,
    .examples = {"(T[2,3,5], T[3,1])", "(T[4,7], T[7])", "(T[3,5], T[3,5])", "(T[6,2], T[])"},
};

}  // namespace mge::op_sum_to
