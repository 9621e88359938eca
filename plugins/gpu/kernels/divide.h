// SPDX-License-Identifier: Apache-2.0
// Division of indices by a Divisor. Included by kernels only.
#pragma once

#include "plugins/gpu/kernels/divisor.h"
#include "plugins/gpu/port.h"

namespace mge::gpu {

struct Division {
  int64_t quotient, rest;
};

// Divides an index, which is from 0 to 2^53.
GPU_DEVICE Division Divide(int64_t index, const Divisor& by) {
  int64_t quotient = index;
  if (by.multiplier != 0 && index <= kLargestShortIndex) {
    quotient = static_cast<int64_t>(MultiplyHigh(static_cast<uint32_t>(index), by.multiplier) >> by.shift);
  } else if (by.value != 1) {
    quotient = static_cast<int64_t>(static_cast<double>(index) * by.reciprocal);
    const int64_t rest = index - quotient * by.value;
    quotient += rest < 0 ? -1 : rest >= by.value ? 1 : 0;
  }
  return {quotient, index - quotient * by.value};
}

}  // namespace mge::gpu
