// SPDX-License-Identifier: Apache-2.0
// Conversions between element types. They are defined for every value.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <type_traits>

#include "core/base/dtype.h"

namespace mge {

// Returns a double as float, rounded to odd. A second rounding to a shorter type then gives the same result as one
// rounding of the double.
inline float RoundToOdd(double value) {
  float nearest = static_cast<float>(value);
  if (static_cast<double>(nearest) == value || !std::isfinite(nearest)) return nearest;
  uint32_t bits = std::bit_cast<uint32_t>(nearest);
  if (std::abs(static_cast<double>(nearest)) > std::abs(value)) --bits;  // towards zero
  return std::bit_cast<float>(bits | 1u);
}

// Converts a real number to To. To an integer, it truncates and saturates; NaN becomes 0. To bool, it returns value !=
// 0.
template <typename To, typename From>
To FromReal(From value) {
  if constexpr (std::is_same_v<To, bool>) {
    return value != 0;
  } else if constexpr (kIsFloating<To> && sizeof(To) == 2 && std::is_same_v<From, double>) {
    return To(RoundToOdd(value));
  } else if constexpr (kIsFloating<To>) {
    return static_cast<To>(static_cast<Compute<To>>(value));
  } else {
    // 2^digits is exact in every floating type, the largest integer itself is not.
    constexpr int kDigits = std::numeric_limits<To>::digits;
    const From limit = std::ldexp(From(1), kDigits);
    if (!(value < limit)) return value != value ? To(0) : std::numeric_limits<To>::max();
    if constexpr (std::is_signed_v<To>) {
      return value < -limit ? std::numeric_limits<To>::min() : static_cast<To>(value);
    } else {
      return value <= From(-1) ? To(0) : static_cast<To>(value);
    }
  }
}

// Converts any numeric or bool element to another type. Integers wrap around.
template <typename To, typename From>
To Convert(From value) {
  if constexpr (std::is_same_v<To, From>) {
    return value;
  } else if constexpr (kIsFloating<From>) {
    return FromReal<To>(static_cast<Compute<From>>(value));
  } else if constexpr (std::is_same_v<To, bool>) {
    return value != 0;
  } else if constexpr (kIsFloating<To> && sizeof(To) == 2) {
    return FromReal<To>(static_cast<double>(value));
  } else {
    return static_cast<To>(value);
  }
}

}  // namespace mge
