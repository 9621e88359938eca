// SPDX-License-Identifier: Apache-2.0
// Division of indices by numbers that the host knows, without a division on the device, where one of 64 bits is a call.
//
// An index below 2^31 is multiplied by a rounded-up reciprocal of 32 bits and shifted, which is exact (T. Granlund and
// P. L. Montgomery, "Division by Invariant Integers using Multiplication", 1994, section 4). A larger one is multiplied by a
// reciprocal of 53 bits, and the quotient, which is then wrong by at most one, is corrected.
#pragma once

#include <stdint.h>

namespace mge::gpu {

inline constexpr int64_t kLargestShortIndex = 0x7fffffff;

// A divisor, at least 1. The host makes it; kernels get it as an argument.
struct Divisor {
  int64_t value = 1;
  double reciprocal = 1;    // for indices from 2^31 to 2^53
  uint32_t multiplier = 0;  // for indices below 2^31; 0: value is 1 or above 2^31
  uint32_t shift = 0;

  Divisor() = default;
  Divisor(int64_t divisor)  // NOLINT: numbers of shapes are divisors
      : value(divisor < 1 ? 1 : divisor), reciprocal(1 / static_cast<double>(value)) {
    if (value == 1 || value > kLargestShortIndex) return;
    uint32_t bits = 1;  // the least number with 2^bits >= value
    while ((uint64_t{1} << bits) < static_cast<uint64_t>(value)) ++bits;
    multiplier = static_cast<uint32_t>(((uint64_t{1} << (31 + bits)) + static_cast<uint64_t>(value) - 1) /
                                       static_cast<uint64_t>(value));
    shift = bits - 1;
  }
};

}  // namespace mge::gpu
