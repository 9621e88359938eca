// SPDX-License-Identifier: Apache-2.0
// The linear models of ai.onnx.ml: one score for each target, from a row of coefficients and an intercept.
#pragma once

#include "core/ops/families/ml.h"

namespace mge {

struct LinearModel {
  int64_t targets = kUnknownDim;
  Floats coefficients;  // [targets, columns]
  Floats intercepts;    // [targets], or empty
};
// Fails if the sizes of the attributes contradict each other or the number of columns, which may be unknown.
absl::StatusOr<LinearModel> ReadLinearModel(const Attributes& attrs, int64_t columns);

// Checks that the number of scores fits the labels. One score for two labels is that of the second one.
absl::Status CheckScoreCount(int64_t scores, const ClassLabels& labels);
// Sets element `row` of `y` to the label of a row's scores, and out[labels] to the transformed scores.
void FinishLinearRow(const ClassLabels& labels, PostTransform transform, std::span<const float> scores, int64_t row,
                     Tensor& y, std::span<float> out);

// Sets out[targets] to the scores of one row of features.
void LinearScores(const LinearModel& model, std::span<const float> row, float* out);

}  // namespace mge
