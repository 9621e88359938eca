// SPDX-License-Identifier: Apache-2.0
// Vectors of integers whose elements are bytes in memory. Included by vec/*.cc only.
#pragma once

#include "vec/simd.h"

namespace mge::cpu::MGE_CPU_ISA {

// Load kF bytes as integers.
MGE_INLINE VI LoadBytes(const uint8_t* p) {
#if defined(__AVX512F__)
  return (VI)_mm512_cvtepu8_epi32(_mm_loadu_si128((const __m128i*)p));
#elif defined(__AVX2__)
  return (VI)_mm256_cvtepu8_epi32(_mm_loadl_epi64((const __m128i*)p));
#elif defined(__SSE2__)
  int32_t four;
  __builtin_memcpy(&four, p, 4);
  const __m128i zero = _mm_setzero_si128();
  return (VI)_mm_unpacklo_epi16(_mm_unpacklo_epi8(_mm_cvtsi32_si128(four), zero), zero);
#else
  VI v;
  for (int i = 0; i < kF; ++i) v[i] = p[i];
  return v;
#endif
}
MGE_INLINE VI LoadBytes(const int8_t* p) {
#if defined(__AVX512F__)
  return (VI)_mm512_cvtepi8_epi32(_mm_loadu_si128((const __m128i*)p));
#elif defined(__AVX2__)
  return (VI)_mm256_cvtepi8_epi32(_mm_loadl_epi64((const __m128i*)p));
#elif defined(__SSE2__)
  int32_t four;
  __builtin_memcpy(&four, p, 4);
  const __m128i bytes = _mm_cvtsi32_si128(four), twice = _mm_unpacklo_epi8(bytes, bytes);
  return (VI)_mm_srai_epi32(_mm_unpacklo_epi16(twice, twice), 24);
#else
  VI v;
  for (int i = 0; i < kF; ++i) v[i] = p[i];
  return v;
#endif
}

// Stores the lowest byte of each element. If they are signed, the values must be in the range of the type.
template <typename B>
MGE_INLINE void StoreBytes(B* p, VI v) {
#if defined(__AVX512F__)
  _mm_storeu_si128((__m128i*)p, _mm512_cvtepi32_epi8((__m512i)v));
#elif defined(__AVX2__)
  const __m256i low = _mm256_set1_epi32(0x0c080400);  // the lowest bytes of four elements
  const __m256i packed = _mm256_shuffle_epi8((__m256i)v, low);
  const int32_t halves[2] = {_mm256_extract_epi32(packed, 0), _mm256_extract_epi32(packed, 4)};
  __builtin_memcpy(p, halves, 8);
#elif defined(__SSE2__)
  const __m128i low = _mm_and_si128((__m128i)v, _mm_set1_epi32(255)), words = _mm_packs_epi32(low, low);
  const int32_t four = _mm_cvtsi128_si32(_mm_packus_epi16(words, words));
  __builtin_memcpy(p, &four, 4);
#else
  for (int i = 0; i < kF; ++i) p[i] = static_cast<B>(v[i]);
#endif
}

// Load or store the first n elements. The others are loaded as zero and not stored.
template <typename B>
MGE_INLINE VI LoadBytesN(const B* p, int n) {
  B lanes[kF] = {};
  for (int i = 0; i < n; ++i) lanes[i] = p[i];
  return LoadBytes(lanes);
}
template <typename B>
MGE_INLINE void StoreBytesN(B* p, VI v, int n) {
  B lanes[kF];
  StoreBytes(lanes, v);
  for (int i = 0; i < n; ++i) p[i] = lanes[i];
}

// Rounds to the nearest integer, halves to even. The values must fit into 32 bits.
MGE_INLINE VI RoundToVI(VF v) {
#if defined(__AVX512F__)
  return (VI)_mm512_cvtps_epi32((__m512)v);
#elif defined(__AVX2__)
  return (VI)_mm256_cvtps_epi32((__m256)v);
#elif defined(__SSE2__)
  return (VI)_mm_cvtps_epi32((__m128)v);
#else
  return ToVI(RoundEven(v));
#endif
}

// Returns round(v) + zero, limited to lo..hi, which must be exact as floats. NaN gives lo.
MGE_INLINE VI Quantized(VF v, int32_t zero, int32_t lo, int32_t hi) {
  const VF low = Splat(static_cast<float>(lo - zero)), high = Splat(static_cast<float>(hi - zero));
  return RoundToVI(MinRaw(MaxRaw(v, low), high)) + zero;
}

}  // namespace mge::cpu::MGE_CPU_ISA
