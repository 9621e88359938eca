// SPDX-License-Identifier: Apache-2.0
// Losses of a classification.
#include <cmath>
#include <limits>

#include "core/ops/families/loss.h"
#include "core/ops/gradient.h"

namespace mge::op_losses {
namespace {

absl::Status EvalNegativeLogLikelihoodLoss(EvalContext& ctx) {
  MGE_ASSIGN_OR_RETURN(Tensor log_probabilities, ToDouble(ctx, ctx.input(0)));
  return EvalLoss(ctx, log_probabilities);
}

absl::StatusOr<bool> NegativeLogLikelihoodLossBody(FunctionBody& f) {
  if (!f.has_rank(1)) return false;
  MGE_RETURN_IF_ERROR(AddLoss(f, f.x()));
  return true;
}

absl::Status InferSoftmaxCrossEntropyLoss(InferContext& ctx) {
  ctx.SetOutput(1, ctx.input(0));
  return InferLoss(ctx);
}

// Computes x[n, :, d] -= log(sum(exp(x[n, :, d]))) in place.
void LogSoftmax(const Shape& shape, std::span<double> x) {
  const int64_t classes = shape[1];
  int64_t inner = 1;
  for (size_t i = 2; i < shape.size(); ++i) inner *= shape[i];
  for (int64_t n = 0; n < shape[0]; ++n) {
    for (int64_t d = 0; d < inner; ++d) {
      double* column = x.data() + n * classes * inner + d;
      double largest = -std::numeric_limits<double>::infinity(), sum = 0;
      for (int64_t c = 0; c < classes; ++c) largest = std::max(largest, column[c * inner]);
      for (int64_t c = 0; c < classes; ++c) sum += std::exp(column[c * inner] - largest);
      const double shift = largest + std::log(sum);
      for (int64_t c = 0; c < classes; ++c) column[c * inner] -= shift;
    }
  }
}

absl::Status EvalSoftmaxCrossEntropyLoss(EvalContext& ctx) {
  const Tensor& scores = ctx.input(0);
  MGE_ASSIGN_OR_RETURN(Tensor wide, ToDouble(ctx, scores));
  if (wide.data() == scores.data()) {
    MGE_ASSIGN_OR_RETURN(wide, Tensor::Create(DType::kF64, scores.shape(), ctx.allocator()));
    std::copy(scores.Data<double>().begin(), scores.Data<double>().end(), wide.MutableData<double>().begin());
  }
  if (scores.elements() > 0) LogSoftmax(scores.shape(), wide.MutableData<double>());
  if (ctx.has_output(1)) {
    MGE_ASSIGN_OR_RETURN(Tensor * log_probabilities, ctx.Output(1, scores.dtype(), scores.shape()));
    DispatchFloating(scores.dtype(), [&](auto tag) {
      using T = typename decltype(tag)::type;
      std::span<T> out = log_probabilities->MutableData<T>();
      for (size_t i = 0; i < out.size(); ++i) out[i] = static_cast<T>(static_cast<Compute<T>>(wide.Data<double>()[i]));
    });
  }
  return EvalLoss(ctx, wide);
}

absl::StatusOr<bool> SoftmaxCrossEntropyLossBody(FunctionBody& f) {
  if (!f.has_rank(1)) return false;
  const Term log_probabilities = f.Of("LogSoftmax", {f.input(0)}, IntAttribute("axis", 1));
  f.Result(1, "Identity", {log_probabilities.id()});
  MGE_RETURN_IF_ERROR(AddLoss(f, log_probabilities));
  return true;
}

constexpr OpDef kRows[] = {
    {.name = "NegativeLogLikelihoodLoss",
     .doc = "The (weighted) negative log-likelihood of labels for given logarithms of probabilities.",
     .inputs = {{"input", kFloating}, {"target", kIndex}, {"weight", kFloating, Arity::kOptional}},
     .outputs = {{"loss"}},
     .attrs = {{"ignore_index", AttrType::kInt, Presence::kOptional, "the class without a loss; absent: none"},
               {"reduction", "mean", "mean, sum or none"}},
     .infer = InferLoss,
     .eval = EvalNegativeLogLikelihoodLoss,
     .gradient = ReplacementGradient,
     .fixed_inputs = 0b100,
     .body = NegativeLogLikelihoodLossBody,
     .since = 12,
     .examples = {"(T[3,5], int64[3]<1,0,4>)", "(T[2,5,3], int64[2,3]<1,0,4,-7,2,2>, T[5]@0.5:2) {ignore_index=-7}",
                  "(T[2,5,3], int32[2,3]<1,0,4,1,2,2>) {ignore_index=1, reduction=\"none\"}",
                  "(T[3,5], int64[3]<1,0,4>, T[5]@0.5:2) {reduction=\"sum\"}"}},
    {.name = "SoftmaxCrossEntropyLoss",
     .doc = "The (weighted) negative log-likelihood of labels for the softmax of scores.",
     .inputs = {{"scores", kFloating}, {"labels", kIndex}, {"weights", kFloating, Arity::kOptional}},
     .outputs = {{"output"}, {.name = "log_prob", .arity = Arity::kOptional}},
     .attrs = {{"ignore_index", AttrType::kInt, Presence::kOptional, "the class without a loss; absent: none"},
               {"reduction", "mean", "mean, sum or none"}},
     .infer = InferSoftmaxCrossEntropyLoss,
     .eval = EvalSoftmaxCrossEntropyLoss,
     .gradient = ReplacementGradient,
     .fixed_inputs = 0b100,
     .body = SoftmaxCrossEntropyLossBody,
     .since = 12,
     .examples = {"(T[3,5], int64[3]<1,0,4>)", "(T[3,5], int32[3]<1,0,4>, T[5]@0.5:2) -> 2",
                  "(T[2,5,3], int64[2,3]<1,0,4,-7,2,2>, T[5]@0.5:2) {ignore_index=-7}",
                  "(T[2,5,3], int64[2,3]<1,0,4,-7,2,2>) {ignore_index=-7, reduction=\"none\"}",
                  "(T[3,5], int64[3]<1,9,4>) {ignore_index=9, reduction=\"sum\"} -> 2"}},
};

}  // namespace

MGE_OPS(losses) = kRows;

}  // namespace mge::op_losses
