// SPDX-License-Identifier: Apache-2.0
#include "core/ops/families/pool.h"
#include "core/ops/function_body.h"

namespace mge::op_max_pool_gradient {
namespace {

absl::Status Infer(InferContext& ctx) {
  ctx.SetOutput(0, ctx.input(2));
  return absl::OkStatus();
}

// Adds each element of dY to that of the flattened result whose index the pool has returned.
absl::StatusOr<bool> Body(FunctionBody& f) {
  auto flat = [&](const Term& x) { return f.Of("Reshape", {x.id(), f.Integers({-1})}); };
  Attributes attrs = IntAttribute("axis", 0);
  attrs.Set("reduction", std::string("add"));
  const Term zeros = flat(f.Fill(0, f.x(2))), indices = flat(f.x(1)), updates = flat(f.x(0));
  const Term sums = f.Of("ScatterElements", {zeros.id(), indices.id(), updates.id()}, std::move(attrs));
  f.Result(0, "Identity", {f.ReshapeLike(sums, f.x(2)).id()});
  return true;
}

}  // namespace

MGE_OP(max_pool_gradient) = {
    .name = "MaxPoolGradient",
    .domain = "mge",
    .doc =
        "The gradient of a MaxPool by its input X, from that of its output (dY) and the indices that it returned. Of X, "
        "only "
        "the type is used.",
    .inputs = {{"dY", kFloating}, {"Indices", TypeSet{DType::kI64}}, {"X", kFloating}},
    .outputs = {{"dX"}},
    .attrs = kMaxPoolAttrs,
    .infer = Infer,
    .eval = EvalByBody,
    .normalize = NormalizePool<2>,
    .body = Body,
    .examples = {"(T[1,1,2,2], int64[1,1,2,2]<5,7,13,15>, T[1,1,4,4]) {kernel_shape=[2,2], strides=[2,2]}",
                 "(T[1,2,2,2], int64[1,2,2,2]<4,4,4,11,12,14,21,17>, T[1,2,4,3]) {kernel_shape=[3,2]}",
                 "(T[2,1,3], int64[2,1,3]<0,2,3,5,6,9>, T[2,1,5]) {kernel_shape=[2], strides=[2], pads=[1,0]}"},
};

}  // namespace mge::op_max_pool_gradient
