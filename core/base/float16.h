// SPDX-License-Identifier: Apache-2.0
// Storage types for IEEE 754 binary16 and for bfloat16. Arithmetic is done in float. Conversions round to nearest, ties to
// even.
#pragma once

#include <bit>
#include <cstdint>

#include "mge/float16_bits.hpp"

namespace mge {

struct Half {
  uint16_t bits = 0;
  Half() = default;
  explicit Half(float f) : bits(FloatToHalfBits(f)) {}
  operator float() const { return HalfBitsToFloat(bits); }
};

struct BFloat16 {
  uint16_t bits = 0;
  BFloat16() = default;
  explicit BFloat16(float f) : bits(FloatToBFloat16Bits(f)) {}
  operator float() const { return BFloat16BitsToFloat(bits); }
};

// The type in which operators compute with elements of type T.
template <typename T>
struct ComputeType {
  using type = T;
};
template <>
struct ComputeType<Half> {
  using type = float;
};
template <>
struct ComputeType<BFloat16> {
  using type = float;
};
template <typename T>
using Compute = typename ComputeType<T>::type;

template <typename T>
inline constexpr bool kIsFloating = false;
template <>
inline constexpr bool kIsFloating<float> = true;
template <>
inline constexpr bool kIsFloating<double> = true;
template <>
inline constexpr bool kIsFloating<Half> = true;
template <>
inline constexpr bool kIsFloating<BFloat16> = true;

}  // namespace mge
