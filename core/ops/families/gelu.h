// SPDX-License-Identifier: Apache-2.0
// The Gaussian error linear unit, exact and approximate.
#pragma once

#include <cmath>
#include <numbers>

#include "core/ops/op_helpers.h"

namespace mge {

template <typename T>
T Gelu(T x) {
  return T(0.5) * x * (1 + std::erf(x / std::numbers::sqrt2_v<T>));
}

template <typename T>
T GeluTanh(T x) {
  constexpr T kScale = std::numbers::inv_sqrtpi_v<T> * std::numbers::sqrt2_v<T>;  // sqrt(2/pi)
  return T(0.5) * x * (1 + std::tanh(kScale * (x + T(0.044715) * x * x * x)));
}

}  // namespace mge
