// SPDX-License-Identifier: Apache-2.0
// Helpers of the normalization operators.
#pragma once

#include <cmath>

#include "core/ops/families/broadcast.h"
#include "core/ops/infer_checks.h"
#include "core/ops/op_helpers.h"

namespace mge {

struct Moments {
  double mean = 0, variance = 0;
};

// Returns mean and population variance of the n elements x[0], x[step], ... Uses two passes, so that a large mean does
// not reduce precision. Returns NaN for n = 0.
template <typename T>
Moments MomentsOf(const T* x, int64_t n, int64_t step = 1) {
  double sum = 0, squares = 0;
  for (int64_t i = 0; i < n; ++i) sum += static_cast<double>(x[i * step]);
  double mean = sum / static_cast<double>(n);
  for (int64_t i = 0; i < n; ++i) {
    double d = static_cast<double>(x[i * step]) - mean;
    squares += d * d;
  }
  return {mean, squares / static_cast<double>(n)};
}

template <typename T>
T Rounded(double value) {
  return static_cast<T>(static_cast<Compute<T>>(value));
}

// Returns the elements of a floating tensor as double. For parameters such as scale and bias.
inline std::vector<double> Doubles(const Tensor& tensor) {
  std::vector<double> out(tensor.elements());
  DispatchFloating(tensor.dtype(), [&](auto tag) {
    auto in = tensor.Data<typename decltype(tag)::type>();
    for (size_t i = 0; i < out.size(); ++i) out[i] = static_cast<double>(in[i]);
  });
  return out;
}

// Checks that a parameter can be broadcast to the normalized input `x`. Fails with kInvalidNode.
inline absl::Status CheckFits(std::string_view name, std::span<const int64_t> shape, std::span<const int64_t> x) {
  if (FitsBroadcastTo(shape, x)) return absl::OkStatus();
  return Fail(errors::kInvalidNode, fmt::format("{} {} cannot be broadcast to X {}", name, ShapeText(shape), ShapeText(x)));
}

// Checks that a parameter has shape [channels], where channels is dimension 1 of `x`. Fails with kInvalidNode.
inline absl::Status CheckPerChannel(std::span<const int64_t> x, std::string_view name, std::span<const int64_t> shape) {
  int64_t channels = x.size() > 1 ? x[1] : 1;
  if (shape.size() == 1 && (shape[0] == channels || shape[0] < 0 || channels < 0)) return absl::OkStatus();
  return Fail(errors::kInvalidNode, fmt::format("{} has shape {}, expected [{}]", name, ShapeText(shape), channels));
}

}  // namespace mge
