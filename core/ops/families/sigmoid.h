// SPDX-License-Identifier: Apache-2.0
// The logistic function and the activations made of it.
#pragma once

#include <cmath>

namespace mge {

template <typename T>
T Sigmoid(T x) {
  T e = std::exp(-std::abs(x));  // at most 1, so that neither branch overflows
  return x < 0 ? e / (1 + e) : 1 / (1 + e);
}

template <typename T>
T Swish(T x, float alpha) {
  return x * Sigmoid(T(alpha) * x);
}

}  // namespace mge
