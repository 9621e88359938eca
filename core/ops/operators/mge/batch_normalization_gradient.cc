// SPDX-License-Identifier: Apache-2.0
#include "core/ops/families/normalized.h"
#include "core/ops/function_body.h"

namespace mge::op_batch_normalization_gradient {
namespace {

absl::Status Infer(InferContext& ctx) {
  ctx.SetOutput(0, ctx.input(1));
  ctx.SetOutput(1, ctx.input(2));
  ctx.SetOutput(2, ctx.input(2));
  return absl::OkStatus();
}

absl::StatusOr<bool> Body(FunctionBody& f) {
  if (!f.has_rank(1)) return false;
  const PerChannel channels(f, f.rank(1));
  const Term dy = f.x(0);
  const Normalized n(f, f.x(1), channels.others(), f.attrs().Float("epsilon"));
  f.Result(0, "Identity", {n.Gradient(dy * channels.Wide(f.x(2))).id()});
  f.Result(1, "Identity", {channels.Sum(dy * n.x).id()});
  f.Result(2, "Identity", {channels.Sum(dy).id()});
  return true;
}

}  // namespace

MGE_OP(batch_normalization_gradient) = {
    .name = "BatchNormalizationGradient",
    .domain = "mge",
    .doc = "The gradients of a BatchNormalization in training by its inputs X, scale and B, from that of its output (dY).",
    .inputs = {{"dY", kFloating}, {"X", kFloating}, {"scale", kFloating}},
    .outputs = {{"dX"}, {"dScale"}, {"dB"}},
    .attrs = {{"epsilon", 1e-5f, "added to the variance"}},
    .infer = Infer,
    .eval = EvalByBody,
    .body = Body,
    .examples = {"(T[2,5,3,4], T[2,5,3,4], T[5]) -> 3", "(T[9,5], T[9,5], T[5]) {epsilon=0.01} -> 3"},
};

}  // namespace mge::op_batch_normalization_gradient
