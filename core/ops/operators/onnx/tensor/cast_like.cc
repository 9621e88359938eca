// SPDX-License-Identifier: Apache-2.0
#include "core/ops/families/cast.h"
#include "core/ops/families/movement.h"
#include "core/ops/gradient.h"

namespace mge::op_cast_like {
namespace {

absl::Status Infer(InferContext& ctx) {
  TensorType type = ctx.input(0);
  type.dtype = ctx.input(1).dtype;
  MGE_RETURN_IF_ERROR(CheckRoundMode(ctx.attrs()));
  ctx.SetOutput(0, std::move(type));
  return absl::OkStatus();
}

absl::Status Eval(EvalContext& ctx) {
  MGE_ASSIGN_OR_RETURN(Tensor y, CastTensor(ctx.input(0), ctx.input(1).dtype(), ctx.allocator()));
  return ctx.SetOutput(0, TensorValue(std::move(y)));
}

absl::Status Gradient(GradientContext& g) { return g.Give(0, g.CastTo(g.dy(), g.type(0).dtype)); }

}  // namespace

MGE_OP(cast_like) = {
    .name = "CastLike",
    .doc = "Converts every element to the type of the second input. The elements of that input are ignored.",
    .inputs = {{"input", kFixedSize | kStrings}, {"target_type", kFixedSize | kStrings}},
    .outputs = {{"output"}},
    .attrs = {{"saturate", 1, "of float8, which is not supported"},
              {"round_mode", "up", "of float8, which is not supported"}},
    .infer = Infer,
    .eval = Eval,
    .gradient = Gradient,
    .since = 15,
    .examples = {"(T[3,37]@0:3, float32[1])", "(T[9]@0:4, int32[1])"},
};

}  // namespace mge::op_cast_like
