// SPDX-License-Identifier: Apache-2.0
// Converts a number to another type. Real to integer: truncates towards zero, saturates, NaN becomes 0. Integers wrap
// around. Conversions to 16-bit floats round once.
#pragma once

#include <math.h>

#include "plugins/gpu/port.h"

namespace mge::gpu {

// Converts a double to float, rounding to odd: the last bit records that bits were lost. Rounding the result to a shorter
// type then gives the same value as rounding the double directly.
GPU_DEVICE float RoundToOdd(double value) {
  const float nearest = static_cast<float>(value);
  if (static_cast<double>(nearest) == value || !(fabs(static_cast<double>(nearest)) < INFINITY)) return nearest;
  uint32_t bits = BitCast<uint32_t>(nearest);
  if (fabs(static_cast<double>(nearest)) > fabs(value)) --bits;  // towards zero
  return BitCast<float>(bits | 1u);
}

template <typename To>
struct CastTo {
  static GPU_DEVICE To Of(double v) {
    constexpr int kBits = 8 * sizeof(To);
    constexpr bool kSigned = static_cast<To>(-1) < To(0);
    const double limit = ldexp(1.0, kSigned ? kBits - 1 : kBits);
    constexpr To kLowest = kSigned ? static_cast<To>(uint64_t{1} << (kBits - 1)) : To(0);
    if (!(v < limit)) return v != v ? To(0) : static_cast<To>(~kLowest);
    if (kSigned) return v < -limit ? kLowest : static_cast<To>(v);
    return v <= -1.0 ? To(0) : static_cast<To>(v);
  }
  static GPU_DEVICE To Of(float v) { return Of(static_cast<double>(v)); }
  template <typename I>
  static GPU_DEVICE To Of(I v) {
    return static_cast<To>(v);
  }
};
template <>
struct CastTo<float> {
  template <typename I>
  static GPU_DEVICE float Of(I v) {
    return static_cast<float>(v);
  }
};
template <>
struct CastTo<double> {
  template <typename I>
  static GPU_DEVICE double Of(I v) {
    return static_cast<double>(v);
  }
};
template <>
struct CastTo<f16> {
  static GPU_DEVICE f16 Of(float v) { return NarrowToF16(v); }
  template <typename I>
  static GPU_DEVICE f16 Of(I v) {
    return NarrowToF16(RoundToOdd(static_cast<double>(v)));
  }
};
template <>
struct CastTo<bf16> {
  static GPU_DEVICE bf16 Of(float v) { return NarrowToBf16(v); }
  template <typename I>
  static GPU_DEVICE bf16 Of(I v) {
    return NarrowToBf16(RoundToOdd(static_cast<double>(v)));
  }
};

}  // namespace mge::gpu
