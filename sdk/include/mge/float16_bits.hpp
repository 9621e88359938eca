// SPDX-License-Identifier: Apache-2.0
// Conversions between float and the bits of IEEE 754 binary16 and of bfloat16, rounding to nearest, ties to even. Includes no C++
// library header and is always inlined, so that code for single instruction sets can include it.
#pragma once

#include <stdint.h>

#define MGE_FLOAT16_INLINE inline __attribute__((always_inline))

namespace mge {

MGE_FLOAT16_INLINE float HalfBitsToFloat(uint16_t half) {
  const uint32_t sign = static_cast<uint32_t>(half & 0x8000u) << 16, exponent = (half >> 10) & 31u, mantissa = half & 0x3ffu;
  const uint32_t bits = sign | (exponent == 31 ? 0x7f800000u : (exponent + 112) << 23) | mantissa << 13;
  float value = static_cast<float>(mantissa) * 0x1p-24f;  // zero or subnormal: exact in float
  if (exponent == 0) return sign ? -value : value;
  __builtin_memcpy(&value, &bits, sizeof(value));
  return value;
}

MGE_FLOAT16_INLINE uint16_t FloatToHalfBits(float value) {
  uint32_t bits;
  __builtin_memcpy(&bits, &value, sizeof(bits));
  const uint32_t sign = (bits >> 16) & 0x8000u, magnitude = bits & 0x7fffffffu;
  if (magnitude > 0x7f800000u) return static_cast<uint16_t>(sign | 0x7e00u | ((magnitude >> 13) & 0x3ffu));  // NaN
  if (magnitude >= 0x477ff000u) return static_cast<uint16_t>(sign | 0x7c00u);  // rounds to infinity
  if (magnitude < 0x38800000u) {  // subnormal: the sum rounds to a multiple of 2^-24
    float sum;
    __builtin_memcpy(&sum, &magnitude, sizeof(sum));
    sum += 0.5f;
    __builtin_memcpy(&bits, &sum, sizeof(bits));
    return static_cast<uint16_t>(sign | (bits - 0x3f000000u));
  }
  return static_cast<uint16_t>(sign | ((magnitude + 0xfffu + ((magnitude >> 13) & 1u) - 0x38000000u) >> 13));
}

MGE_FLOAT16_INLINE float BFloat16BitsToFloat(uint16_t half) {
  const uint32_t bits = static_cast<uint32_t>(half) << 16;
  float value;
  __builtin_memcpy(&value, &bits, sizeof(value));
  return value;
}

MGE_FLOAT16_INLINE uint16_t FloatToBFloat16Bits(float value) {
  uint32_t bits;
  __builtin_memcpy(&bits, &value, sizeof(bits));
  if ((bits & 0x7fffffffu) > 0x7f800000u) return static_cast<uint16_t>((bits >> 16) | 0x40u);
  return static_cast<uint16_t>((bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16);
}

}  // namespace mge
