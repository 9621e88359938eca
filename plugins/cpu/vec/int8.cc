// SPDX-License-Identifier: Apache-2.0
#include "vec/int8.h"

#include "vec/simd.h"

namespace mge::cpu::MGE_CPU_ISA {
namespace {

#if defined(__AVX512F__)
#define MGE_VNNI __attribute__((target("avx512vnni")))
#define MGE_UNROLL _Pragma("GCC unroll 16")

// Multiplies `Rows` rows with `Panels` panels of B. Each group of 16 columns has its own sums.
template <int Rows, int Panels>
MGE_VNNI __attribute__((noinline)) void Tile(const Int8Task& t, int64_t row, int64_t panel) {
  constexpr int kVectors = 2 * Panels;
  const int64_t groups = Int8Bytes(t.k) / 4, panel_bytes = groups * 4 * kInt8Columns;
  const uint8_t* a = t.a + row * t.a_stride;
  const int8_t* b = t.b + panel * panel_bytes;
  __m512i sum[Rows][kVectors];
  MGE_UNROLL
  for (int r = 0; r < Rows; ++r) {
    MGE_UNROLL
    for (int v = 0; v < kVectors; ++v) sum[r][v] = _mm512_setzero_si512();
  }
  for (int64_t g = 0; g < groups; ++g) {
    __m512i x[Rows];
    MGE_UNROLL
    for (int r = 0; r < Rows; ++r) {
      int32_t four;
      __builtin_memcpy(&four, a + r * t.a_stride + 4 * g, 4);
      x[r] = _mm512_set1_epi32(four);
    }
    MGE_UNROLL
    for (int v = 0; v < kVectors; ++v) {
      const __m512i w = _mm512_loadu_si512(b + v / 2 * panel_bytes + g * 4 * kInt8Columns + v % 2 * 64);
      MGE_UNROLL
      for (int r = 0; r < Rows; ++r) sum[r][v] = _mm512_dpbusd_epi32(sum[r][v], x[r], w);
    }
  }
  MGE_UNROLL
  for (int r = 0; r < Rows; ++r) {
    // sum of (a - za)(b - zb) = sum of a b - za sum of b - zb (sum of a - k za)
    const VI a_zero = SplatI(t.a_zero);
    const VI rest = SplatI(t.a_sums[(row + r) * t.a_sums_stride] - static_cast<int32_t>(t.k) * t.a_zero);
    MGE_UNROLL
    for (int v = 0; v < kVectors; ++v) {
      const int64_t column = panel * kInt8Columns + v * 16;
      const VI b_sum = (VI)_mm512_loadu_si512(t.b_sums + column), b_zero = (VI)_mm512_loadu_si512(t.b_zero + column);
      const VI exact = (VI)sum[r][v] - a_zero * b_sum - b_zero * rest;
      float* c = t.c + (row + r) * t.ldc + column;
      const VF start = t.bias ? Load(t.bias + column) : Load(c);
      Store(c, Fma(ToVF(exact), t.a_scale * Load(t.b_scale + column), start));
    }
  }
}

void Run(const Int8Task& t, int64_t m0, int64_t m1, int64_t p0, int64_t p1) {
  int64_t m = m0;
  for (; m + 4 <= m1; m += 4) {
    int64_t p = p0;
    for (; p + 2 <= p1; p += 2) Tile<4, 2>(t, m, p);
    for (; p < p1; ++p) Tile<4, 1>(t, m, p);
  }
  for (; m < m1; ++m) {
    int64_t p = p0;
    for (; p + 4 <= p1; p += 4) Tile<1, 4>(t, m, p);
    for (; p < p1; ++p) Tile<1, 1>(t, m, p);
  }
}
#endif

int32_t Quantize(const float* x, int64_t n, float scale, float zero, uint8_t* out) {
  int64_t i = 0;
  int32_t sum = 0;
  VI sums = {};
  for (; i < n; i += kF) {
    const int lanes = static_cast<int>(n - i < kF ? n - i : kF);
    VF q = RoundEven((lanes == kF ? Load(x + i) : LoadN(x + i, lanes)) / scale) + zero;
    const VI bytes = ToVI(MinRaw(MaxRaw(q, Splat(0.0f)), Splat(255.0f)));  // NaN becomes 0
    if (lanes == kF) {
      sums += bytes;
#if defined(__AVX512F__)
      _mm_storeu_si128((__m128i*)(out + i), _mm512_cvtepi32_epi8((__m512i)bytes));
#else
      for (int k = 0; k < kF; ++k) out[i + k] = static_cast<uint8_t>(bytes[k]);
#endif
    } else {
      for (int k = 0; k < lanes; ++k) {
        out[i + k] = static_cast<uint8_t>(bytes[k]);
        sum += bytes[k];
      }
    }
  }
  for (int k = 0; k < kF; ++k) sum += sums[k];
  for (i = n; i < Int8Bytes(n); ++i) out[i] = 0;
  return sum;
}

}  // namespace

#if defined(__AVX512F__)
extern const Int8Table kInt8 = {Run, Quantize};
#else
extern const Int8Table kInt8 = {nullptr, Quantize};
#endif

}  // namespace mge::cpu::MGE_CPU_ISA
