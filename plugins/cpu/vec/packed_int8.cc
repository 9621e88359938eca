// SPDX-License-Identifier: Apache-2.0
#include "vec/packed_int8.h"

#include "vec/simd.h"

namespace mge::cpu::MGE_CPU_ISA {
extern const PackedInt8Table kPackedInt8;

#if defined(__AVX2__)
namespace {

constexpr int kMaxRows = kVectorBytes == 64 ? 8 : 4;  // whose sums are in registers

void Pack(const uint32_t* source, int64_t words, int64_t n, int64_t p, uint32_t* panels) {
  uint32_t* out = panels + p * words * kF;
  for (int64_t l = 0; l < kF; ++l) {
    const int64_t column = p * kF + l;
    for (int64_t i = 0; i < words; ++i) out[i * kF + l] = column < n ? source[column * words + i] : 0;
  }
}

// Stores the lanes as bytes. `in_pairs`: of each 8 lanes the even ones first.
MGE_INLINE void StoreBytes(VI v, bool in_pairs, int8_t* row) {
#if defined(__AVX512F__)
  const __m128i bytes = _mm512_cvtepi32_epi8((__m512i)v);
  const __m128i order = _mm_set_epi8(15, 13, 11, 9, 14, 12, 10, 8, 7, 5, 3, 1, 6, 4, 2, 0);
  _mm_storeu_si128((__m128i*)row, in_pairs ? _mm_shuffle_epi8(bytes, order) : bytes);
#else
  // The first byte of each lane, then the halves of the register side by side: by 16 bits they alternate.
  const int order = in_pairs ? 0x0c040800 : 0x0c080400;
  const __m256i bytes = _mm256_shuffle_epi8((__m256i)v, _mm256_set1_epi32(order));
  const __m128i low = _mm256_castsi256_si128(bytes), high = _mm256_extracti128_si256(bytes, 1);
  _mm_storel_epi64((__m128i*)row, in_pairs ? _mm_unpacklo_epi16(low, high) : _mm_unpacklo_epi32(low, high));
#endif
}

MGE_INLINE VF LoadUntil(const float* a, int64_t k, int64_t last) {
  return k + kF <= last ? Load(a + k) : LoadN(a + k, static_cast<int>(k < last ? last - k : 0));
}

#if defined(__AVX512F__)
MGE_INLINE int32_t SumOfLanes(VI v) { return _mm512_reduce_add_epi32((__m512i)v); }
MGE_INLINE int32_t LargestLane(VI v) { return _mm512_reduce_max_epi32((__m512i)v); }
#else
MGE_INLINE int32_t SumOfLanes(VI v) {
  __m128i x = _mm_add_epi32(_mm256_castsi256_si128((__m256i)v), _mm256_extracti128_si256((__m256i)v, 1));
  x = _mm_add_epi32(x, _mm_shuffle_epi32(x, 0x4e));
  return _mm_cvtsi128_si32(_mm_add_epi32(x, _mm_shuffle_epi32(x, 0xb1)));
}
MGE_INLINE int32_t LargestLane(VI v) {
  __m128i x = _mm_max_epi32(_mm256_castsi256_si128((__m256i)v), _mm256_extracti128_si256((__m256i)v, 1));
  x = _mm_max_epi32(x, _mm_shuffle_epi32(x, 0x4e));
  return _mm_cvtsi128_si32(_mm_max_epi32(x, _mm_shuffle_epi32(x, 0xb1)));
}
#endif

// Returns the largest amount, or NaN if there is one: the bits of amounts have the order of integers, and NaN comes last.
MGE_INLINE float LargestAmount(const float* a, int64_t first, int64_t last) {
  VI largest = {};
  for (int64_t k = first; k < last; k += kF) {
    const VI bits = (VI)LoadUntil(a, k, last) & 0x7fffffff;
    largest = bits > largest ? bits : largest;
  }
  const int32_t bits = LargestLane(largest);
  float out;
  __builtin_memcpy(&out, &bits, sizeof(out));
  return out;
}

void Round(const float* a, const Int8Blocks& size, int8_t* row, Int8RowBlock* blocks) {
  for (int64_t b = 0; b < size.blocks; ++b) {
    const int64_t first = b * size.block, end = first + size.block, last = end < size.k ? end : size.k;
    const float most = LargestAmount(a, first, last);  // NaN makes the scale, and so the result, NaN
    const float inverse = most > 0 ? 127 / most : 0;
    VI sums = {};
    for (int64_t k = first; k < end; k += kF) {
      const VI numbers = ToVI(RoundEven(LoadUntil(a, k, last) * inverse));
      StoreBytes(numbers, size.bits == 4, row + k);
      sums += numbers;
    }
    const int32_t sum = SumOfLanes(sums);
    const float scale = most / 127;
    blocks[b] = {scale, scale * static_cast<float>(sum), -(1 << (size.bits - 1)) * sum};
  }
}

MGE_INLINE VI FourBytes(const int8_t* p) {
  int32_t word;
  __builtin_memcpy(&word, p, sizeof(word));
  return SplatI(word);
}

MGE_INLINE VU Word(const uint32_t* p) {
  VU v;
  __builtin_memcpy(&v, p, kVectorBytes);
  return v;
}

// Adds the integer sums of block i of panel p to the totals of rows row..row + kRows.
template <int kRows>
MGE_INLINE void AddBlock(const PackedInt8Task& t, int64_t p, int64_t row, int64_t i, const VI (&sums)[kRows],
                         VF (&total)[kRows]) {
  const int64_t at = (p * t.size.blocks + i) * kF;
  const VF scale = Load(t.scales + at);
  MGE_UNROLL
  for (int r = 0; r < kRows; ++r) {
    const Int8RowBlock& part = t.row_blocks[(row + r) * t.size.blocks + i];
    total[r] = Fma(ToVF(sums[r] + part.offset) * part.scale, scale, total[r]);
    if (t.zeros) total[r] = total[r] - Load(t.zeros + at) * scale * part.sum;
  }
}

template <int kRows>
MGE_INLINE void StoreRows(const PackedInt8Task& t, int64_t p, int64_t row, VF (&total)[kRows]) {
  const int64_t n0 = p * kF;
  const int columns = static_cast<int>(t.size.n - n0 < kF ? t.size.n - n0 : kF);
  MGE_UNROLL
  for (int r = 0; r < kRows; ++r) {
    if (t.bias) total[r] = total[r] + LoadN(t.bias + n0, columns);
    float* c = t.c + (row + r) * t.size.n + n0;
    columns == kF ? Store(c, total[r]) : StoreN(c, total[r], columns);
  }
}

// ---------------------------------------------------------------- products of bytes in pairs, whose sums have 16 bits

#if defined(__AVX512F__)
MGE_INLINE VI Pairs(VU bytes, VI numbers) { return (VI)_mm512_maddubs_epi16((__m512i)bytes, (__m512i)numbers); }
MGE_INLINE VI Add16(VI a, VI b) { return (VI)_mm512_add_epi16((__m512i)a, (__m512i)b); }
MGE_INLINE VI Widen16(VI a) { return (VI)_mm512_madd_epi16((__m512i)a, _mm512_set1_epi16(1)); }
#else
MGE_INLINE VI Pairs(VU bytes, VI numbers) { return (VI)_mm256_maddubs_epi16((__m256i)bytes, (__m256i)numbers); }
MGE_INLINE VI Add16(VI a, VI b) { return (VI)_mm256_add_epi16((__m256i)a, (__m256i)b); }
MGE_INLINE VI Widen16(VI a) { return (VI)_mm256_madd_epi16((__m256i)a, _mm256_set1_epi16(1)); }
#endif

// Adds in this order. The compiler would otherwise add in a tree, for which there are not enough registers.
MGE_INLINE void AddInOrder(VI& sum, VI pairs) {
  sum = Add16(sum, pairs);
  __asm__("" : "+v"(sum));
}

// Computes kRows rows of one panel. Weights of 8 bits are two numbers of 4 bits: 8 pairs of 15 * 127 stay below 2^15, so kWords
// words are summed with 16 bits.
template <int kBits, int kWords, int kRows>
void PanelInPairs(const PackedInt8Task& t, int64_t p, int64_t row) {
  const int64_t words = t.size.block * kBits / 32, all = t.size.blocks * t.size.block;
  const uint32_t* b = t.panels + p * t.size.blocks * words * kF;
  const int8_t* a = t.rows + row * all;
  VF total[kRows] = {};
  for (int64_t i = 0; i < t.size.blocks; ++i) {
    VI sums[kRows] = {};
    for (int64_t w = 0; w < words; w += kWords) {
      VI low_sums[kRows] = {}, high_sums[kRows] = {};
      MGE_UNROLL
      for (int j = 0; j < kWords; ++j, b += kF, a += 32 / kBits) {
        const VU v = Word(b), low = v & 0x0f0f0f0fu, high = (v >> 4) & 0x0f0f0f0fu;
        MGE_UNROLL
        for (int r = 0; r < kRows; ++r) {
          AddInOrder(low_sums[r], Pairs(low, FourBytes(a + r * all)));
          if constexpr (kBits == 4) {
            AddInOrder(low_sums[r], Pairs(high, FourBytes(a + r * all + 4)));
          } else {
            AddInOrder(high_sums[r], Pairs(high, FourBytes(a + r * all)));
          }
        }
      }
      MGE_UNROLL
      for (int r = 0; r < kRows; ++r) {
        sums[r] += Widen16(low_sums[r]);
        if constexpr (kBits == 8) sums[r] += Widen16(high_sums[r]) << 4;
      }
    }
    AddBlock(t, p, row, i, sums, total);
  }
  StoreRows(t, p, row, total);
}

template <int kBits, int kWords>
void RunInPairs(const PackedInt8Task& t, int64_t p0, int64_t p1) {
  for (int64_t p = p0; p < p1; ++p) {
    int64_t row = 0;
    for (; row + kMaxRows <= t.rows_count; row += kMaxRows) PanelInPairs<kBits, kWords, kMaxRows>(t, p, row);
    for (; row + 2 <= t.rows_count; row += 2) PanelInPairs<kBits, kWords, 2>(t, p, row);
    if (row < t.rows_count) PanelInPairs<kBits, kWords, 1>(t, p, row);
  }
}

void Run(const PackedInt8Task& t, int64_t p0, int64_t p1) {
  if (t.size.bits == 4) return t.size.block < 32 ? RunInPairs<4, 2>(t, p0, p1) : RunInPairs<4, 4>(t, p0, p1);
  t.size.block < 32 ? RunInPairs<8, 4>(t, p0, p1) : RunInPairs<8, 8>(t, p0, p1);
}

// ---------------------------------------------------------------- products of bytes in fours

#if defined(__AVX512F__)
#define MGE_DOT(sum, bytes, numbers) (VI) _mm512_dpbusd_epi32((__m512i)(sum), (__m512i)(bytes), (__m512i)(numbers))
#else
#define MGE_DOT(sum, bytes, numbers) (VI) _mm256_dpbusd_avx_epi32((__m256i)(sum), (__m256i)(bytes), (__m256i)(numbers))
#endif

// Computes kRows rows of one panel.
template <int kBits, int kRows>
MGE_VNNI void PanelInFours(const PackedInt8Task& t, int64_t p, int64_t row) {
  const int64_t words = t.size.block * kBits / 32, all = t.size.blocks * t.size.block;
  const uint32_t* b = t.panels + p * t.size.blocks * words * kF;
  const int8_t* a = t.rows + row * all;
  VF total[kRows] = {};
  for (int64_t i = 0; i < t.size.blocks; ++i) {
    VI even[kRows] = {}, odd[kRows] = {};
    for (int64_t w = 0; w < words; ++w, b += kF, a += 32 / kBits) {
      const VU v = Word(b), low = v & 0x0f0f0f0fu, high = (v >> 4) & 0x0f0f0f0fu;
      MGE_UNROLL
      for (int r = 0; r < kRows; ++r) {
        if constexpr (kBits == 8) {
          even[r] = MGE_DOT(even[r], v, FourBytes(a + r * all));
        } else {
          even[r] = MGE_DOT(even[r], low, FourBytes(a + r * all));
          odd[r] = MGE_DOT(odd[r], high, FourBytes(a + r * all + 4));
        }
      }
    }
    MGE_UNROLL
    for (int r = 0; r < kRows; ++r) even[r] += odd[r];
    AddBlock(t, p, row, i, even, total);
  }
  StoreRows(t, p, row, total);
}

template <int kBits>
MGE_VNNI void RunBitsInFours(const PackedInt8Task& t, int64_t p0, int64_t p1) {
  for (int64_t p = p0; p < p1; ++p) {
    int64_t row = 0;
    for (; row + kMaxRows <= t.rows_count; row += kMaxRows) PanelInFours<kBits, kMaxRows>(t, p, row);
    for (; row + 2 <= t.rows_count; row += 2) PanelInFours<kBits, 2>(t, p, row);
    if (row < t.rows_count) PanelInFours<kBits, 1>(t, p, row);
  }
}

MGE_VNNI void RunInFours(const PackedInt8Task& t, int64_t p0, int64_t p1) {
  if (t.size.bits == 4) return RunBitsInFours<4>(t, p0, p1);
  RunBitsInFours<8>(t, p0, p1);
}

}  // namespace

const PackedInt8Table kPackedInt8 = {kF, Pack, Round, Run, RunInFours};
#else
const PackedInt8Table kPackedInt8 = {};
#endif

}  // namespace mge::cpu::MGE_CPU_ISA
