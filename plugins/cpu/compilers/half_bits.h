// SPDX-License-Identifier: Apache-2.0
// Conversions between float32 and the bits of float16 by operations on integers, for builders (functions.h) whose compiler has
// none that keep NaN.
#pragma once

#include <cstdint>

namespace mge::jit {

inline constexpr int32_t kMagnitude = 0x7fffffff;
inline constexpr int32_t kSmallestNormalHalf = 113 << 23;  // 2^-14, as the bits of a float32

// Returns the bits of x rounded to float16, nearest even, as an integer.
template <typename B, typename V>
V HalfBits(B& b, const V& x) {
  constexpr int32_t kTooLarge = 143 << 23;  // 65536
  constexpr int32_t kHalf = 126 << 23;      // 0.5: adding it leaves the subnormal's bits at the end
  const auto I = [&b](int32_t i) { return b.Integer(i); };
  const auto below = [&](const V& i, int32_t limit) { return b.Less(b.FloatOfBits(i), b.FloatOfBits(I(limit))); };
  const V a = b.IntAnd(b.Bits(x), I(kMagnitude));
  const V odd = b.IntAnd(b.ShiftRight(a, 13), I(1));
  const V normal = b.ShiftRight(b.IntAdd(b.IntAdd(a, odd), I(0xfff - (112 << 23))), 13);
  const V subnormal = b.IntSub(b.Bits(b.Add(b.FloatOfBits(a), b.FloatOfBits(I(kHalf)))), I(kHalf));
  V r = b.Select(below(a, kSmallestNormalHalf), subnormal, normal);
  r = b.Select(below(a, kTooLarge), r, I(0x7c00));
  r = b.Select(b.IsNaN(x), b.IntOr(I(0x7e00), b.IntAnd(b.ShiftRight(a, 13), I(0x3ff))), r);
  return b.IntOr(r, b.IntAnd(b.ShiftRight(b.Bits(x), 16), I(0x8000)));
}

// Returns the float32 of the bits of a float16, which are an integer.
template <typename B, typename V>
V FloatOfHalfBits(B& b, const V& bits) {
  const auto I = [&b](int32_t i) { return b.Integer(i); };
  const V a = b.ShiftLeft(b.IntAnd(bits, I(0x7fff)), 13);
  const V normal = b.IntAdd(a, I(112 << 23));
  const V special = b.IntAdd(a, I(224 << 23));
  const V subnormal =
      b.Bits(b.Sub(b.FloatOfBits(b.IntAdd(a, I(kSmallestNormalHalf))), b.FloatOfBits(I(kSmallestNormalHalf))));
  const auto below = [&](int32_t limit) { return b.Less(b.FloatOfBits(a), b.FloatOfBits(I(limit))); };
  const V r = b.Select(below(1 << 23), subnormal, b.Select(below(31 << 23), normal, special));
  return b.FloatOfBits(b.IntOr(r, b.ShiftLeft(b.IntAnd(bits, I(0x8000)), 16)));
}

}  // namespace mge::jit
