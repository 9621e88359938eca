// SPDX-License-Identifier: Apache-2.0
// The support vector machines of ai.onnx.ml: the kernel function between a row of features and the support vectors.
#pragma once

#include <vector>

#include "core/ops/families/ml.h"

namespace mge {

enum class SvmKernel { kLinear, kPoly, kRbf, kSigmoid };

// The checked attributes that classifier and regressor share.
struct Svm {
  SvmKernel kernel = SvmKernel::kLinear;
  float gamma = 0, coef0 = 0, degree = 0;
  Floats vectors;       // [columns, count]; empty for a linear model
  Floats coefficients;  // of a linear model: [columns, classes]
  Floats rho;
  int64_t count = 0;    // number of support vectors; 0: a linear model
  int64_t columns = 0;  // number of features
};
// `count` is the number of support vectors, `classes` the number of rows of a linear model.
absl::StatusOr<Svm> ReadSvm(const Attributes& attrs, int64_t count, int64_t classes);

// Sets out[i] to the kernel function of a row of features and vector i. `vectors` has the vectors as columns.
void SvmKernels(const Svm& svm, std::span<const float> row, const Floats& vectors, std::span<float> out);

}  // namespace mge
