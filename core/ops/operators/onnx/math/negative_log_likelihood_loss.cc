// SPDX-License-Identifier: Apache-2.0
#include "core/ops/families/loss.h"
#include "core/ops/gradient.h"

namespace mge::op_negative_log_likelihood_loss {
namespace {

absl::Status Eval(EvalContext& ctx) {
  MGE_ASSIGN_OR_RETURN(Tensor log_probabilities, ToDouble(ctx, ctx.input(0)));
  return EvalLoss(ctx, log_probabilities);
}

absl::StatusOr<bool> Body(FunctionBody& f) {
  if (!f.has_rank(1)) return false;
  MGE_RETURN_IF_ERROR(AddLoss(f, f.x()));
  return true;
}

}  // namespace

MGE_OP(negative_log_likelihood_loss) = {
    .name = "NegativeLogLikelihoodLoss",
    .doc = "The (weighted) negative log-likelihood of labels for given logarithms of probabilities.",
    .inputs = {{"input", kFloating}, {"target", kIndex}, {"weight", kFloating, Arity::kOptional}},
    .outputs = {{"loss"}},
    .attrs = {{"ignore_index", AttrType::kInt, Presence::kOptional, "the class without a loss; absent: none"},
              {"reduction", "mean", "mean, sum or none"}},
    .infer = InferLoss,
    .eval = Eval,
    .gradient = ReplacementGradient,
    .fixed_inputs = 0b100,
    .body = Body,
    .since = 12,
    .examples = {"(T[3,5], int64[3]<1,0,4>)", "(T[2,5,3], int64[2,3]<1,0,4,-7,2,2>, T[5]@0.5:2) {ignore_index=-7}",
                 "(T[2,5,3], int32[2,3]<1,0,4,1,2,2>) {ignore_index=1, reduction=\"none\"}",
                 "(T[3,5], int64[3]<1,0,4>, T[5]@0.5:2) {reduction=\"sum\"}"},
};

}  // namespace mge::op_negative_log_likelihood_loss
