// SPDX-License-Identifier: Apache-2.0
// The 16-bit floating types as C++ values: IEEE 754 binary16 and bfloat16. They convert to and from float, rounding to
// nearest even. Arithmetic is done in float.
#pragma once

#include <bit>
#include <cstdint>

namespace mge {
inline namespace v0 {

// The element type MGE_DTYPE_F16.
struct F16 {
  uint16_t bits = 0;
  F16() = default;
  explicit F16(float value) {
    const uint32_t all = std::bit_cast<uint32_t>(value);
    const uint32_t sign = (all >> 16) & 0x8000u, magnitude = all & 0x7fffffffu;
    uint32_t half;
    if (magnitude > 0x7f800000u) {
      half = 0x7e00u | ((magnitude >> 13) & 0x3ffu);  // NaN
    } else if (magnitude >= 0x477ff000u) {
      half = 0x7c00u;  // rounds to infinity
    } else if (magnitude < 0x38800000u) {
      half = std::bit_cast<uint32_t>(std::bit_cast<float>(magnitude) + 0.5f) -
             0x3f000000u;  // subnormal: the sum rounds at 2^-24
    } else {
      half = (magnitude + 0xfffu + ((magnitude >> 13) & 1u) - 0x38000000u) >> 13;
    }
    bits = static_cast<uint16_t>(sign | half);
  }
  operator float() const {
    const uint32_t sign = (bits & 0x8000u) << 16, exponent = (bits >> 10) & 0x1fu, mantissa = bits & 0x3ffu;
    if (exponent == 0) {
      const float small = static_cast<float>(mantissa) * 0x1p-24f;
      return sign ? -small : small;
    }
    return std::bit_cast<float>(sign | ((exponent == 0x1f ? 0xffu : exponent + 112) << 23) | (mantissa << 13));
  }
};

// The element type MGE_DTYPE_BF16.
struct BF16 {
  uint16_t bits = 0;
  BF16() = default;
  explicit BF16(float value) {
    const uint32_t all = std::bit_cast<uint32_t>(value);
    const bool nan = (all & 0x7fffffffu) > 0x7f800000u;
    bits = static_cast<uint16_t>((nan ? all | 0x400000u : all + 0x7fffu + ((all >> 16) & 1u)) >> 16);
  }
  operator float() const { return std::bit_cast<float>(static_cast<uint32_t>(bits) << 16); }
};

}  // namespace v0
}  // namespace mge
