// SPDX-License-Identifier: Apache-2.0
// The negative log-likelihood of class labels, for NegativeLogLikelihoodLoss and SoftmaxCrossEntropyLoss.
#pragma once

#include "core/ops/function_body.h"
#include "core/ops/infer_checks.h"

namespace mge {

// Checks scores [N, C, d...], labels [N, d...] and weights [C]. Returns the shape of the loss: a scalar if attribute
// reduction is mean (default) or sum, else the labels' shape.
absl::StatusOr<Shape> LossShape(const Attributes& attrs, std::span<const int64_t> scores, std::span<const int64_t> labels,
                                /*nullable*/ const Shape* weights);

// Sets output 0 to the type of the loss. The inputs are scores, labels and weights.
absl::Status InferLoss(InferContext& ctx);

// Returns the elements of a floating tensor as float64.
absl::StatusOr<Tensor> ToDouble(EvalContext& ctx, const Tensor& tensor);

// Computes output 0 from the logarithms of probabilities, which are float64 in the shape of input 0. Fails with
// kIndexOutOfRange if a label is neither a class nor ignore_index.
absl::Status EvalLoss(EvalContext& ctx, const Tensor& log_probabilities);

// Adds nodes that compute output 0 from the logarithms of probabilities. Inputs 1 and 2 are labels and weights. The rank of
// the labels must be known.
absl::Status AddLoss(FunctionBody& f, const Term& log_probabilities);

}  // namespace mge
