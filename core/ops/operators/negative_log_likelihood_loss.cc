// SPDX-License-Identifier: Apache-2.0
#include "core/ops/families/loss.h"

namespace mge::op_negative_log_likelihood_loss {
namespace {

absl::Status Eval(EvalContext& ctx) {
  MGE_ASSIGN_OR_RETURN(Tensor log_probabilities, ToDouble(ctx, ctx.input(0)));
  return EvalLoss(ctx, log_probabilities);
}

}  // namespace

MGE_OP(negative_log_likelihood_loss) = {
    .name = "NegativeLogLikelihoodLoss",
    .doc = "The (weighted) negative log-likelihood of labels for given logarithms of probabilities.",
    .inputs = {{"input", kFloating}, {"target", kIndex}, {"weight", kFloating, Arity::kOptional}},
    .outputs = {{"loss"}},
    .attrs = {{"ignore_index", AttrType::kInt}, {"reduction", AttrType::kText}},
    .infer = InferLoss,
    .eval = Eval,
    .since = 12,
    .examples = {"(T[3,5], int64[3]<1,0,4>)"},
};

}  // namespace mge::op_negative_log_likelihood_loss
