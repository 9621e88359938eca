// SPDX-License-Identifier: Apache-2.0
// Vectors of one register, with the width of the instruction set that this file is compiled for. Included by vec/*.cc only.
//
// A vector is a GCC vector: + - * / and comparisons work lane by lane, `mask ? a : b` selects, scalars broadcast. Functions
// below add the missing operations. Everything is in the namespace of the instruction set, so that the linker cannot merge
// two versions of a function.
#pragma once

#include <stdint.h>

#include "types.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#if !defined(MGE_CPU_ISA)
#define MGE_CPU_ISA portable  // the build defines it for vec/*.cc
#endif

namespace mge::cpu::MGE_CPU_ISA {

#if defined(__AVX512F__)
inline constexpr int kVectorBytes = 64;
#elif defined(__AVX2__)
inline constexpr int kVectorBytes = 32;
#else
inline constexpr int kVectorBytes = 16;
#endif

// Integer operators are compiled for the base set only: memory limits their speed, and more versions would triple the
// library's size.
inline constexpr bool kWithIntegers = kVectorBytes == 16;

typedef float VF __attribute__((vector_size(kVectorBytes)));
typedef double VD __attribute__((vector_size(kVectorBytes)));
typedef int32_t VI __attribute__((vector_size(kVectorBytes)));  // also the mask of VF
typedef uint32_t VU __attribute__((vector_size(kVectorBytes)));
typedef int64_t VL __attribute__((vector_size(kVectorBytes)));  // also the mask of VD
typedef uint64_t VU64 __attribute__((vector_size(kVectorBytes)));
inline constexpr int kF = kVectorBytes / 4;  // lanes of VF
inline constexpr int kD = kVectorBytes / 8;

#define MGE_INLINE static inline __attribute__((always_inline))
#define MGE_INLINE_MEMBER inline __attribute__((always_inline))
#define MGE_UNROLL _Pragma("GCC unroll 16")  // unrolls the loop behind it

// Functions with it may use dot products of bytes, which are an extension of the instruction set.
#if defined(__AVX512F__)
#define MGE_VNNI __attribute__((target("avx512vnni")))
#elif defined(__AVX2__)
#define MGE_VNNI __attribute__((target("avxvnni")))
#endif

// The vector type for the compute type C.
template <typename C>
struct VectorOf;
template <>
struct VectorOf<float> {
  using type = VF;
  using mask = VI;
};
template <>
struct VectorOf<double> {
  using type = VD;
  using mask = VL;
};
template <typename C>
using Vec = typename VectorOf<C>::type;
template <typename C>
inline constexpr int kLanes = kVectorBytes / static_cast<int>(sizeof(C));

MGE_INLINE VF Splat(float x) { return x - VF{}; }  // x - 0 keeps -0
MGE_INLINE VD Splat(double x) { return x - VD{}; }
MGE_INLINE VI SplatI(int32_t x) { return x - VI{}; }

// ---------------------------------------------------------------- loads and stores (no alignment needed)

MGE_INLINE VF Load(const float* p) {
  VF v;
  __builtin_memcpy(&v, p, kVectorBytes);
  return v;
}
MGE_INLINE VD Load(const double* p) {
  VD v;
  __builtin_memcpy(&v, p, kVectorBytes);
  return v;
}
MGE_INLINE void Store(float* p, VF v) { __builtin_memcpy(p, &v, kVectorBytes); }
MGE_INLINE void Store(double* p, VD v) { __builtin_memcpy(p, &v, kVectorBytes); }

#if defined(__AVX512F__)
MGE_INLINE VF Load(const F16* p) { return (VF)_mm512_cvtph_ps(_mm256_loadu_si256((const __m256i*)p)); }
MGE_INLINE void Store(F16* p, VF v) {
  _mm256_storeu_si256((__m256i*)p, _mm512_cvtps_ph((__m512)v, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC));
}
MGE_INLINE VF Load(const BF16* p) {
  return (VF)_mm512_slli_epi32(_mm512_cvtepu16_epi32(_mm256_loadu_si256((const __m256i*)p)), 16);
}
#elif defined(__AVX2__)
MGE_INLINE VF Load(const F16* p) { return (VF)_mm256_cvtph_ps(_mm_loadu_si128((const __m128i*)p)); }
MGE_INLINE void Store(F16* p, VF v) {
  _mm_storeu_si128((__m128i*)p, _mm256_cvtps_ph((__m256)v, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC));
}
MGE_INLINE VF Load(const BF16* p) {
  return (VF)_mm256_slli_epi32(_mm256_cvtepu16_epi32(_mm_loadu_si128((const __m128i*)p)), 16);
}
#else
MGE_INLINE VF Load(const F16* p) {
  VF v;
  for (int i = 0; i < kF; ++i) v[i] = ToFloat(p[i]);
  return v;
}
MGE_INLINE void Store(F16* p, VF v) {
  for (int i = 0; i < kF; ++i) p[i] = ToF16(v[i]);
}
MGE_INLINE VF Load(const BF16* p) {
  VF v;
  for (int i = 0; i < kF; ++i) v[i] = ToFloat(p[i]);
  return v;
}
#endif
MGE_INLINE void Store(BF16* p, VF v) {
  VU bits = (VU)v;
  VU rounded = (bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16;
  VU quiet = (bits >> 16) | 0x40u;
  VU r = (bits & 0x7fffffffu) > 0x7f800000u ? quiet : rounded;
#if defined(__AVX512F__)
  _mm256_storeu_si256((__m256i*)p, _mm512_cvtepi32_epi16((__m512i)r));
#else
  for (int i = 0; i < kF; ++i) p[i].bits = static_cast<uint16_t>(r[i]);
#endif
}

// Load or store the first n lanes (0 <= n <= lanes). The other lanes are loaded as zero and not stored.
#if defined(__AVX512F__)
MGE_INLINE VF LoadN(const float* p, int n) { return (VF)_mm512_maskz_loadu_ps((__mmask16)_bzhi_u32(0xffffu, n), p); }
MGE_INLINE void StoreN(float* p, VF v, int n) { _mm512_mask_storeu_ps(p, (__mmask16)_bzhi_u32(0xffffu, n), (__m512)v); }
MGE_INLINE VD LoadN(const double* p, int n) { return (VD)_mm512_maskz_loadu_pd((__mmask8)_bzhi_u32(0xffu, n), p); }
MGE_INLINE void StoreN(double* p, VD v, int n) { _mm512_mask_storeu_pd(p, (__mmask8)_bzhi_u32(0xffu, n), (__m512d)v); }
MGE_INLINE VF LoadN(const F16* p, int n) {
  return (VF)_mm512_cvtph_ps(_mm256_maskz_loadu_epi16((__mmask16)_bzhi_u32(0xffffu, n), p));
}
MGE_INLINE VF LoadN(const BF16* p, int n) {
  __m256i lanes = _mm256_maskz_loadu_epi16((__mmask16)_bzhi_u32(0xffffu, n), p);
  return (VF)_mm512_slli_epi32(_mm512_cvtepu16_epi32(lanes), 16);
}
template <typename H>
MGE_INLINE void StoreHalfN(H* p, VF v, int n) {
  H lanes[kF];
  Store(lanes, v);
  _mm256_mask_storeu_epi16(p, (__mmask16)_bzhi_u32(0xffffu, n), _mm256_loadu_si256((const __m256i*)lanes));
}
#else
MGE_INLINE VF LoadN(const float* p, int n) {
  float lanes[kF] = {};
  for (int i = 0; i < n; ++i) lanes[i] = p[i];
  return Load(lanes);
}
MGE_INLINE void StoreN(float* p, VF v, int n) {
  for (int i = 0; i < n; ++i) p[i] = v[i];
}
MGE_INLINE VD LoadN(const double* p, int n) {
  double lanes[kD] = {};
  for (int i = 0; i < n; ++i) lanes[i] = p[i];
  return Load(lanes);
}
MGE_INLINE void StoreN(double* p, VD v, int n) {
  for (int i = 0; i < n; ++i) p[i] = v[i];
}
template <typename H>
MGE_INLINE VF LoadHalfN(const H* p, int n) {
  H lanes[kF] = {};
  for (int i = 0; i < n; ++i) lanes[i] = p[i];
  return Load(lanes);
}
template <typename H>
MGE_INLINE void StoreHalfN(H* p, VF v, int n) {
  H lanes[kF];
  Store(lanes, v);
  for (int i = 0; i < n; ++i) p[i] = lanes[i];
}
MGE_INLINE VF LoadN(const F16* p, int n) { return LoadHalfN(p, n); }
MGE_INLINE VF LoadN(const BF16* p, int n) { return LoadHalfN(p, n); }
#endif
MGE_INLINE void StoreN(F16* p, VF v, int n) { StoreHalfN(p, v, n); }
MGE_INLINE void StoreN(BF16* p, VF v, int n) { StoreHalfN(p, v, n); }

// ---------------------------------------------------------------- arithmetic

#if defined(__AVX512F__)
MGE_INLINE VF Fma(VF a, VF b, VF c) { return (VF)_mm512_fmadd_ps((__m512)a, (__m512)b, (__m512)c); }
MGE_INLINE VD Fma(VD a, VD b, VD c) { return (VD)_mm512_fmadd_pd((__m512d)a, (__m512d)b, (__m512d)c); }
MGE_INLINE VF Sqrt(VF a) { return (VF)_mm512_sqrt_ps((__m512)a); }
MGE_INLINE VF RoundEven(VF a) { return (VF)_mm512_roundscale_ps((__m512)a, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC); }
MGE_INLINE VF Floor(VF a) { return (VF)_mm512_roundscale_ps((__m512)a, _MM_FROUND_TO_NEG_INF | _MM_FROUND_NO_EXC); }
MGE_INLINE VF Ceil(VF a) { return (VF)_mm512_roundscale_ps((__m512)a, _MM_FROUND_TO_POS_INF | _MM_FROUND_NO_EXC); }
MGE_INLINE VD Sqrt(VD a) { return (VD)_mm512_sqrt_pd((__m512d)a); }
MGE_INLINE VD RoundEven(VD a) { return (VD)_mm512_roundscale_pd((__m512d)a, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC); }
MGE_INLINE VD Floor(VD a) { return (VD)_mm512_roundscale_pd((__m512d)a, _MM_FROUND_TO_NEG_INF | _MM_FROUND_NO_EXC); }
MGE_INLINE VD Ceil(VD a) { return (VD)_mm512_roundscale_pd((__m512d)a, _MM_FROUND_TO_POS_INF | _MM_FROUND_NO_EXC); }
// The processor's operations: return b if either operand is NaN.
MGE_INLINE VF MinRaw(VF a, VF b) { return (VF)_mm512_min_ps((__m512)a, (__m512)b); }
MGE_INLINE VF MaxRaw(VF a, VF b) { return (VF)_mm512_max_ps((__m512)a, (__m512)b); }
#elif defined(__AVX2__)
MGE_INLINE VF Fma(VF a, VF b, VF c) { return (VF)_mm256_fmadd_ps((__m256)a, (__m256)b, (__m256)c); }
MGE_INLINE VD Fma(VD a, VD b, VD c) { return (VD)_mm256_fmadd_pd((__m256d)a, (__m256d)b, (__m256d)c); }
MGE_INLINE VF Sqrt(VF a) { return (VF)_mm256_sqrt_ps((__m256)a); }
MGE_INLINE VF RoundEven(VF a) { return (VF)_mm256_round_ps((__m256)a, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC); }
MGE_INLINE VF Floor(VF a) { return (VF)_mm256_round_ps((__m256)a, _MM_FROUND_TO_NEG_INF | _MM_FROUND_NO_EXC); }
MGE_INLINE VF Ceil(VF a) { return (VF)_mm256_round_ps((__m256)a, _MM_FROUND_TO_POS_INF | _MM_FROUND_NO_EXC); }
MGE_INLINE VD Sqrt(VD a) { return (VD)_mm256_sqrt_pd((__m256d)a); }
MGE_INLINE VD RoundEven(VD a) { return (VD)_mm256_round_pd((__m256d)a, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC); }
MGE_INLINE VD Floor(VD a) { return (VD)_mm256_round_pd((__m256d)a, _MM_FROUND_TO_NEG_INF | _MM_FROUND_NO_EXC); }
MGE_INLINE VD Ceil(VD a) { return (VD)_mm256_round_pd((__m256d)a, _MM_FROUND_TO_POS_INF | _MM_FROUND_NO_EXC); }
MGE_INLINE VF MinRaw(VF a, VF b) { return (VF)_mm256_min_ps((__m256)a, (__m256)b); }
MGE_INLINE VF MaxRaw(VF a, VF b) { return (VF)_mm256_max_ps((__m256)a, (__m256)b); }
#else
MGE_INLINE VF Fma(VF a, VF b, VF c) { return a * b + c; }
MGE_INLINE VD Fma(VD a, VD b, VD c) { return a * b + c; }
MGE_INLINE VF Sqrt(VF a) {
  for (int i = 0; i < kF; ++i) a[i] = __builtin_sqrtf(a[i]);
  return a;
}
MGE_INLINE VF RoundEven(VF a) {  // adding 2^23 rounds; larger values are integers already
  VI sign = (VI)a & static_cast<int32_t>(0x80000000u);
  VF magnitude = (VF)((VI)a & 0x7fffffff);
  VF rounded = (magnitude + 8388608.0f) - 8388608.0f;
  return (VF)((VI)(magnitude < 8388608.0f ? rounded : magnitude) | sign);
}
MGE_INLINE VF Floor(VF a) {
  VF r = RoundEven(a);
  return r > a ? r - 1.0f : r;
}
MGE_INLINE VF Ceil(VF a) {
  VF r = RoundEven(a);
  VF up = r < a ? r + 1.0f : r;
  return (VF)((VI)up | ((VI)a & static_cast<int32_t>(0x80000000u)));  // -0.5 gives -0
}
MGE_INLINE VF MinRaw(VF a, VF b) { return a < b ? a : b; }
MGE_INLINE VF MaxRaw(VF a, VF b) { return a > b ? a : b; }
MGE_INLINE VD Sqrt(VD a) {
  for (int i = 0; i < kD; ++i) a[i] = __builtin_sqrt(a[i]);
  return a;
}
MGE_INLINE VD RoundEven(VD a) {
  for (int i = 0; i < kD; ++i) a[i] = __builtin_rint(a[i]);
  return a;
}
MGE_INLINE VD Floor(VD a) {
  for (int i = 0; i < kD; ++i) a[i] = __builtin_floor(a[i]);
  return a;
}
MGE_INLINE VD Ceil(VD a) {
  for (int i = 0; i < kD; ++i) a[i] = __builtin_ceil(a[i]);
  return a;
}
#endif
MGE_INLINE VD MinRaw(VD a, VD b) { return a < b ? a : b; }
MGE_INLINE VD MaxRaw(VD a, VD b) { return a > b ? a : b; }

// Return NaN if either operand is NaN.
template <typename V>
MGE_INLINE V Min(V a, V b) {
  return a != a ? a : MinRaw(a, b);
}
template <typename V>
MGE_INLINE V Max(V a, V b) {
  return a != a ? a : MaxRaw(a, b);
}

MGE_INLINE VF Abs(VF a) { return (VF)((VI)a & 0x7fffffff); }
MGE_INLINE VD Abs(VD a) { return (VD)((VL)a & INT64_MAX); }
MGE_INLINE VF CopySign(VF magnitude, VF sign) {
  return (VF)(((VI)magnitude & 0x7fffffff) | ((VI)sign & static_cast<int32_t>(0x80000000u)));
}
MGE_INLINE VD CopySign(VD magnitude, VD sign) { return (VD)(((VL)magnitude & INT64_MAX) | ((VL)sign & INT64_MIN)); }
MGE_INLINE VF ToVF(VI a) { return __builtin_convertvector(a, VF); }
MGE_INLINE VI ToVI(VF a) { return __builtin_convertvector(a, VI); }  // truncates

// The lanes of a VF as two VD.
struct Wide {
  VD low, high;
};
#if defined(__AVX512F__)
MGE_INLINE Wide ToVD(VF a) {
  __m512d halves = _mm512_castps_pd((__m512)a);
  __m256 low = (__m256)_mm512_castpd512_pd256(halves), high = (__m256)_mm512_extractf64x4_pd(halves, 1);
  return {(VD)_mm512_cvtps_pd(low), (VD)_mm512_cvtps_pd(high)};
}
MGE_INLINE VF ToVF(Wide a) {
  __m256d low = (__m256d)_mm512_cvtpd_ps((__m512d)a.low), high = (__m256d)_mm512_cvtpd_ps((__m512d)a.high);
  return (VF)_mm512_insertf64x4(_mm512_castpd256_pd512(low), high, 1);
}
#elif defined(__AVX2__)
MGE_INLINE Wide ToVD(VF a) {
  __m128 low = _mm256_castps256_ps128((__m256)a), high = _mm256_extractf128_ps((__m256)a, 1);
  return {(VD)_mm256_cvtps_pd(low), (VD)_mm256_cvtps_pd(high)};
}
MGE_INLINE VF ToVF(Wide a) {
  __m128 low = _mm256_cvtpd_ps((__m256d)a.low), high = _mm256_cvtpd_ps((__m256d)a.high);
  return (VF)_mm256_insertf128_ps(_mm256_castps128_ps256(low), high, 1);
}
#else
MGE_INLINE Wide ToVD(VF a) {
  Wide w;
  for (int i = 0; i < kD; ++i) w.low[i] = a[i], w.high[i] = a[i + kD];
  return w;
}
MGE_INLINE VF ToVF(Wide a) {
  VF v;
  for (int i = 0; i < kD; ++i) v[i] = static_cast<float>(a.low[i]), v[i + kD] = static_cast<float>(a.high[i]);
  return v;
}
#endif

// Returns whether any lane of a mask is set.
template <typename M>
MGE_INLINE bool Any(M mask) {
#if defined(__AVX512F__)
  return _mm512_test_epi64_mask((__m512i)mask, (__m512i)mask) != 0;
#elif defined(__AVX2__)
  return !_mm256_testz_si256((__m256i)mask, (__m256i)mask);
#else
  int64_t lanes[kD];
  __builtin_memcpy(lanes, &mask, kVectorBytes);
  int64_t any = 0;
  for (int i = 0; i < kD; ++i) any |= lanes[i];
  return any != 0;
#endif
}

// ---------------------------------------------------------------- across lanes, as a fixed tree

template <typename C, typename V, typename F>
MGE_INLINE C Fold(V v, F f) {
  C lanes[kLanes<C>];
  __builtin_memcpy(lanes, &v, kVectorBytes);
  for (int width = kLanes<C> / 2; width > 0; width /= 2) {
    for (int i = 0; i < width; ++i) lanes[i] = f(lanes[i], lanes[i + width]);
  }
  return lanes[0];
}
MGE_INLINE float Sum(VF v) {
  return Fold<float>(v, [](float a, float b) { return a + b; });
}
MGE_INLINE double Sum(VD v) {
  return Fold<double>(v, [](double a, double b) { return a + b; });
}
template <typename C>
MGE_INLINE C MaxNumber(C a, C b) {
  return a != a ? a : b != b ? b : a > b ? a : b;
}
template <typename C>
MGE_INLINE C MinNumber(C a, C b) {
  return a != a ? a : b != b ? b : a < b ? a : b;
}
MGE_INLINE float MaxOf(VF v) {
  return Fold<float>(v, [](float a, float b) { return MaxNumber(a, b); });
}
MGE_INLINE double MaxOf(VD v) {
  return Fold<double>(v, [](double a, double b) { return MaxNumber(a, b); });
}
MGE_INLINE float MinOf(VF v) {
  return Fold<float>(v, [](float a, float b) { return MinNumber(a, b); });
}
MGE_INLINE double MinOf(VD v) {
  return Fold<double>(v, [](double a, double b) { return MinNumber(a, b); });
}

}  // namespace mge::cpu::MGE_CPU_ISA
