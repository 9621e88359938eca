// SPDX-License-Identifier: Apache-2.0
#include "core/ops/families/linear_model.h"

#include <algorithm>

namespace mge {

absl::StatusOr<LinearModel> ReadLinearModel(const Attributes& attrs, int64_t columns) {
  LinearModel model;
  model.coefficients = attrs.FloatList("coefficients");
  model.intercepts = attrs.FloatList("intercepts");
  const auto count = static_cast<int64_t>(model.coefficients.size());
  if (!model.intercepts.empty()) {
    model.targets = static_cast<int64_t>(model.intercepts.size());
  } else if (columns > 0) {
    model.targets = count / columns;
  }
  if (columns != kUnknownDim && (model.targets < 1 || columns < 1 || count != model.targets * columns)) {
    return BadNode(
        fmt::format("{} coefficients and {} intercepts do not fit {} features", count, model.intercepts.size(), columns));
  }
  return model;
}

absl::Status CheckScoreCount(int64_t scores, const ClassLabels& labels) {
  if (scores == kUnknownDim || scores == labels.count() || (scores == 1 && labels.count() == 2)) return absl::OkStatus();
  return BadNode(fmt::format("{} scores for {} labels", scores, labels.count()));
}

void FinishLinearRow(const ClassLabels& labels, PostTransform transform, std::span<const float> scores, int64_t row,
                     Tensor& y, std::span<float> out) {
  const bool binary = scores.size() < out.size();
  if (binary) {
    SetLabel(y, row, labels, scores[0] > 0 ? 1 : 0);
  } else {
    SetLabel(y, row, labels, std::max_element(scores.begin(), scores.end()) - scores.begin());
  }
  if (binary) return TransformBinaryScore(transform, scores[0], out);
  std::copy(scores.begin(), scores.end(), out.begin());
  TransformScores(transform, out);
}

void LinearScores(const LinearModel& model, std::span<const float> row, float* out) {
  const float* w = model.coefficients.data();
  for (int64_t t = 0; t < model.targets; ++t) {
    double sum = 0;
    for (float x : row) sum += static_cast<double>(x) * static_cast<double>(*w++);
    out[t] = static_cast<float>(model.intercepts.empty() ? sum : sum + static_cast<double>(model.intercepts[t]));
  }
}

}  // namespace mge
