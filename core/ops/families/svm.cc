// SPDX-License-Identifier: Apache-2.0
#include "core/ops/families/svm.h"

#include <cmath>

namespace mge {

absl::StatusOr<Svm> ReadSvm(const Attributes& attrs, int64_t count, int64_t classes) {
  Svm svm;
  MGE_ASSIGN_OR_RETURN(int kernel, ReadChoice(attrs, "kernel_type", "LINEAR", {"LINEAR", "POLY", "RBF", "SIGMOID"}));
  const Floats parameters = attrs.FloatList("kernel_params");
  if (!parameters.empty() && parameters.size() != 3) {
    return BadNode(fmt::format("kernel_params has {} elements; gamma, coef0 and degree are expected", parameters.size()));
  }
  if (!parameters.empty()) {
    svm.gamma = parameters[0];
    svm.coef0 = parameters[1];
    svm.degree = parameters[2];
  }
  svm.vectors = attrs.FloatList("support_vectors");
  svm.coefficients = attrs.FloatList("coefficients");
  svm.rho = attrs.FloatList("rho");
  svm.count = count;
  // A linear model ignores the kernel: its coefficients are the weights of the features.
  svm.kernel = count > 0 ? static_cast<SvmKernel>(kernel) : SvmKernel::kLinear;
  const auto size = static_cast<int64_t>(count > 0 ? svm.vectors.size() : svm.coefficients.size());
  const int64_t rows = count > 0 ? count : classes;
  if (count < 0 || rows < 1 || size < rows || size % rows != 0) {
    return BadNode(
        fmt::format("{} numbers do not divide into {} {}", size, rows, count > 0 ? "support vectors" : "classes"));
  }
  svm.columns = size / rows;
  if (svm.rho.empty()) return BadNode("rho has no elements");
  return svm;
}

void SvmKernels(const Svm& svm, std::span<const float> row, const Floats& vectors, std::span<float> out) {
  const float* v = vectors.data();
  for (float& value : out) {
    float sum = 0;
    if (svm.kernel == SvmKernel::kRbf) {
      for (float x : row) {
        const float difference = x - *v++;
        sum += difference * difference;
      }
    } else {
      for (float x : row) sum += x * *v++;
    }
    switch (svm.kernel) {
      case SvmKernel::kLinear: value = sum; break;
      case SvmKernel::kPoly: value = std::pow(svm.gamma * sum + svm.coef0, svm.degree); break;
      case SvmKernel::kRbf: value = std::exp(-svm.gamma * sum); break;
      case SvmKernel::kSigmoid: value = std::tanh(svm.gamma * sum + svm.coef0); break;
    }
  }
}

}  // namespace mge
