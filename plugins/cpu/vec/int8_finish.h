// SPDX-License-Identifier: Apache-2.0
// The last steps of an 8-bit product or convolution: from exact sums to the result. Included by vec/*.cc only.
#pragma once

#include "vec/bytes.h"
#include "vec/int8.h"

namespace mge::cpu::MGE_CPU_ISA {

// Stores the result of kF sums, or of the first `lanes`, at element `at` of C.
template <Int8Result Result>
MGE_INLINE void FinishVector(const Int8Task& t, VI sum, int64_t at, int lanes, VF scale, VF bias) {
  const bool whole = lanes == kF;
  if constexpr (Result == Int8Result::kInt32) {
    float* c = static_cast<float*>(t.c) + at;
    if (whole)
      Store(c, (VF)sum);
    else
      StoreN(c, (VF)sum, lanes);
  } else if constexpr (Result == Int8Result::kFloat || Result == Int8Result::kAddFloat) {
    float* c = static_cast<float*>(t.c) + at;
    VF v = ToVF(sum) * scale;
    if constexpr (Result == Int8Result::kAddFloat)
      v += whole ? Load(c) : LoadN(c, lanes);
    else if (t.bias)
      v += bias;
    if (whole)
      Store(c, v);
    else
      StoreN(c, v, lanes);
  } else {
    constexpr bool kSigned = Result == Int8Result::kInt8;
    VF v = ToVF(sum) * scale;
    if (t.bias) v += bias;
    if (t.divisor != 1) v /= t.divisor;
    const VI q = Quantized(v, t.y_zero, kSigned ? -128 : 0, kSigned ? 127 : 255);
    uint8_t* c = static_cast<uint8_t*>(t.c) + at;
    if (whole)
      StoreBytes(c, q);
    else
      StoreBytesN(c, q, lanes);
  }
}

#if defined(__AVX512F__)

// Stores the first n bytes. Stores with a mask are slow on some processors.
MGE_INLINE void StoreFirst(uint8_t* p, __m512i bytes, int64_t n) {
  if (n == 64) {
    _mm512_storeu_si512(p, bytes);
  } else if (n == 32) {
    _mm256_storeu_si256((__m256i*)p, _mm512_castsi512_si256(bytes));
  } else if (n == 16) {
    _mm_storeu_si128((__m128i*)p, _mm512_castsi512_si128(bytes));
  } else {
    _mm512_mask_storeu_epi8(p, _bzhi_u64(~uint64_t{0}, static_cast<uint32_t>(n)), bytes);
  }
}

// The steps from sums to bytes for 64 columns at a time.
// Returns whether Finish64 has the steps of a task.
MGE_INLINE bool HasSteps(const Int8Task& t) { return !t.b_zero && !t.b_sums && !t.a_sums && t.start; }

// The optional steps of a task.
enum class Steps { kScale, kRowTerm, kAll };  // kRowTerm: the sums of A's rows enter; kAll: also a bias and a division

template <bool Signed, Steps kSteps>
struct Finish64 {
  VI start[4];
  VF scale[4];
  VF bias[4];
  VF divisor;
  VF high;         // the highest byte minus the zero point
  __m512i y_zero;  // as 16-bit integers

  // `columns` exist of the 64 that begin at `column`.
  MGE_INLINE Finish64 Of(const Int8Task& t, int64_t column, int64_t columns) {
    Finish64 f = {};
    for (int v = 0; v < 4; ++v) {
      if (16 * v >= columns) break;  // the arrays end with the panel
      f.start[v] = (VI)Load(reinterpret_cast<const float*>(t.start + column + 16 * v));
      f.scale[v] = t.a_scale * Load(t.scale + column + 16 * v);
      if (kSteps == Steps::kAll && t.bias) f.bias[v] = Load(t.bias + column + 16 * v);
    }
    f.divisor = Splat(t.divisor);
    f.high = Splat(static_cast<float>((Signed ? 127 : 255) - t.y_zero));
    f.y_zero = _mm512_set1_epi16(static_cast<int16_t>(t.y_zero));
    return f;
  }
  // Returns the bytes of the first `Vectors` vectors of sums, minus `less`. Lane L of the result has 4 bytes of lane L of each.
  template <int Vectors = 4>
  __attribute__((always_inline)) __m512i Bytes(const VI* sums, VI less) const {
    __m512i q[4] = {};
    for (int v = 0; v < Vectors; ++v) {
      // The minimum of a NaN is NaN, which is converted to the lowest integer, as are floats that are too low.
      VI sum = sums[v] + start[v];
      if (kSteps != Steps::kScale) sum -= less;
      VF x = ToVF(sum) * scale[v];
      if (kSteps == Steps::kAll) x = (x + bias[v]) / divisor;
      q[v] = _mm512_cvtps_epi32((__m512)MinRaw(high, x));
    }
    const __m512i low = _mm512_adds_epi16(_mm512_packs_epi32(q[0], q[1]), y_zero);
    const __m512i high_half = _mm512_adds_epi16(_mm512_packs_epi32(q[2], q[3]), y_zero);
    return Signed ? _mm512_packs_epi16(low, high_half) : _mm512_packus_epi16(low, high_half);
  }
};

#endif

}  // namespace mge::cpu::MGE_CPU_ISA
