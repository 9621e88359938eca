// SPDX-License-Identifier: Apache-2.0
// Negative log-likelihood of classes, for NegativeLogLikelihoodLoss and SoftmaxCrossEntropyLoss.
#pragma once

#include "core/ops/infer_checks.h"

namespace mge {

// Checks scores [N, C, d...], labels [N, d...] and weights [C], and gives the loss's shape: that of
// the labels, or a scalar where attribute reduction is mean (the default) or sum.
absl::StatusOr<Shape> LossShape(const Attributes& attrs, std::span<const int64_t> scores,
                                std::span<const int64_t> labels, /*nullable*/ const Shape* weights);

// The shape rule: output 0 is the loss. Inputs are scores, labels, weights.
absl::Status InferLoss(InferContext& ctx);

// Elements of a floating tensor as float64.
absl::StatusOr<Tensor> ToDouble(EvalContext& ctx, const Tensor& tensor);

// Computes output 0 from the logarithms of probabilities: float64, in the shape of input 0.
// kIndexOutOfRange for a label that is no class and not ignore_index.
absl::Status EvalLoss(EvalContext& ctx, const Tensor& log_probabilities);

}  // namespace mge
