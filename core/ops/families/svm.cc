// SPDX-License-Identifier: Apache-2.0
#include "core/ops/families/svm.h"

#include <algorithm>
#include <cmath>

namespace mge {
namespace {

Floats Transposed(const Floats& matrix, int64_t rows, int64_t columns) {
  Floats out(matrix.size());
  for (int64_t r = 0; r < rows; ++r) {
    for (int64_t c = 0; c < columns; ++c) out[c * rows + r] = matrix[r * columns + c];
  }
  return out;
}

// The usual degrees are 2 and 3.
float Power(float x, float degree) {
  if (degree == 2) return x * x;
  return degree == 3 ? x * x * x : std::pow(x, degree);
}

}  // namespace

absl::StatusOr<Svm> ReadSvm(const Attributes& attrs, int64_t count, int64_t classes) {
  Svm svm;
  MGE_ASSIGN_OR_RETURN(int kernel, ReadChoice(attrs, "kernel_type", {"LINEAR", "POLY", "RBF", "SIGMOID"}));
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
  Floats& rows_first = count > 0 ? svm.vectors : svm.coefficients;
  rows_first = Transposed(rows_first, rows, svm.columns);
  return svm;
}

void SvmKernels(const Svm& svm, std::span<const float> row, const Floats& vectors, std::span<float> out) {
  const size_t count = out.size();
  std::fill(out.begin(), out.end(), 0.0f);
  const float* v = vectors.data();
  for (float x : row) {
    if (svm.kernel == SvmKernel::kRbf) {
      for (size_t i = 0; i < count; ++i) out[i] += (x - v[i]) * (x - v[i]);
    } else {
      for (size_t i = 0; i < count; ++i) out[i] += x * v[i];
    }
    v += count;
  }
  switch (svm.kernel) {
    case SvmKernel::kLinear: return;
    case SvmKernel::kPoly:
      for (float& k : out) k = Power(svm.gamma * k + svm.coef0, svm.degree);
      return;
    case SvmKernel::kRbf:
      for (float& k : out) k = std::exp(-svm.gamma * k);
      return;
    case SvmKernel::kSigmoid:
      for (float& k : out) k = std::tanh(svm.gamma * k + svm.coef0);
  }
}

}  // namespace mge
