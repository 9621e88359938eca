// SPDX-License-Identifier: Apache-2.0
// The 16-bit floating types as C++ values: IEEE 754 binary16 and bfloat16. They convert to and from float, rounding to
// nearest even. Arithmetic is done in float.
#pragma once

#include <cstdint>

#include "mge/float16_bits.hpp"

namespace mge {
inline namespace v0_types {  // for applications and backends, unlike mge::v0 (namespace.hpp)

// The element type MGE_DTYPE_F16.
struct F16 {
  uint16_t bits = 0;
  F16() = default;
  explicit F16(float value) : bits(FloatToHalfBits(value)) {}
  operator float() const { return HalfBitsToFloat(bits); }
};

// The element type MGE_DTYPE_BF16.
struct BF16 {
  uint16_t bits = 0;
  BF16() = default;
  explicit BF16(float value) : bits(FloatToBFloat16Bits(value)) {}
  operator float() const { return BFloat16BitsToFloat(bits); }
};

}  // namespace v0_types
}  // namespace mge
