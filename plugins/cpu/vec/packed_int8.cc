// SPDX-License-Identifier: Apache-2.0
#include "vec/packed_int8.h"

#include "vec/simd.h"

namespace mge::cpu::MGE_CPU_ISA {
namespace {

void Pack(const uint32_t* source, int64_t words, int64_t n, int64_t p, uint32_t* panels) {
  uint32_t* out = panels + p * words * kF;
  for (int64_t l = 0; l < kF; ++l) {
    const int64_t column = p * kF + l;
    for (int64_t i = 0; i < words; ++i) out[i * kF + l] = column < n ? source[column * words + i] : 0;
  }
}

void Round(const float* a, const Int8Blocks& size, int8_t* row, Int8RowBlock* blocks) {
  for (int64_t b = 0; b < size.blocks; ++b) {
    const int64_t first = b * size.block, last = first + size.block < size.k ? first + size.block : size.k;
    float most = 0;
    for (int64_t k = first; k < last; ++k) most = __builtin_fabsf(a[k]) > most ? __builtin_fabsf(a[k]) : most;
    const float inverse = most > 0 ? 127 / most : 0;
    int32_t sum = 0;
    for (int64_t i = 0; i < size.block; ++i) {
      const int64_t k = first + i;
      const auto number = k < last ? static_cast<int8_t>(__builtin_rintf(a[k] * inverse)) : int8_t{0};
      const int64_t in_word = i % 8;
      row[size.bits == 4 ? first + i - in_word + in_word / 2 + in_word % 2 * 4 : k] = number;
      sum += number;
    }
    const float scale = most / 127;
    blocks[b] = {scale, scale * static_cast<float>(sum), sum};
  }
}

#if defined(MGE_VNNI)

#if defined(__AVX512F__)
#define MGE_DOT(sum, bytes, numbers) (VI) _mm512_dpbusd_epi32((__m512i)(sum), (__m512i)(bytes), (__m512i)(numbers))
#else
#define MGE_DOT(sum, bytes, numbers) (VI) _mm256_dpbusd_avx_epi32((__m256i)(sum), (__m256i)(bytes), (__m256i)(numbers))
#endif

MGE_INLINE VI FourBytes(const int8_t* p) {
  int32_t word;
  __builtin_memcpy(&word, p, sizeof(word));
  return SplatI(word);
}

// Computes kRows rows of one panel.
template <int kBits, int kRows>
MGE_VNNI void Panel(const PackedInt8Task& t, int64_t p, int64_t row) {
  const Int8Blocks& size = t.size;
  const int64_t words = size.block * kBits / 32, all = size.blocks * size.block;
  const uint32_t* b = t.panels + p * size.blocks * words * kF;
  const float* scales = t.scales + p * size.blocks * kF;
  const float* zeros = t.zeros ? t.zeros + p * size.blocks * kF : nullptr;
  const int8_t* a = t.rows + row * all;
  const Int8RowBlock* parts = t.row_blocks + row * size.blocks;
  VF total[kRows] = {};
  for (int64_t i = 0; i < size.blocks; ++i) {
    VI even[kRows], odd[kRows];
    for (int r = 0; r < kRows; ++r) {
      even[r] = SplatI(-(1 << (kBits - 1)) * parts[r * size.blocks + i].integers);
      odd[r] = VI{};
    }
    for (int64_t w = 0; w < words; ++w, b += kF, a += 32 / kBits) {
      VU v;
      __builtin_memcpy(&v, b, kVectorBytes);
      if constexpr (kBits == 8) {
        for (int r = 0; r < kRows; ++r) even[r] = MGE_DOT(even[r], v, FourBytes(a + r * all));
      } else {
        const VU low = v & 0x0f0f0f0fu, high = (v >> 4) & 0x0f0f0f0fu;
        for (int r = 0; r < kRows; ++r) {
          even[r] = MGE_DOT(even[r], low, FourBytes(a + r * all));
          odd[r] = MGE_DOT(odd[r], high, FourBytes(a + r * all + 4));
        }
      }
    }
    const VF scale = Load(scales + i * kF);
    for (int r = 0; r < kRows; ++r) {
      const Int8RowBlock& part = parts[r * size.blocks + i];
      total[r] = Fma(ToVF(even[r] + odd[r]) * part.scale, scale, total[r]);
      if (zeros) total[r] = total[r] - Load(zeros + i * kF) * scale * part.sum;
    }
  }
  const int64_t n0 = p * kF;
  const int columns = static_cast<int>(size.n - n0 < kF ? size.n - n0 : kF);
  for (int r = 0; r < kRows; ++r) {
    if (t.bias) total[r] = total[r] + LoadN(t.bias + n0, columns);
    StoreN(t.c + (row + r) * size.n + n0, total[r], columns);
  }
}

template <int kBits>
MGE_VNNI void RunBits(const PackedInt8Task& t, int64_t p0, int64_t p1) {
  constexpr int kRows = kVectorBytes == 64 ? 8 : 4;
  for (int64_t p = p0; p < p1; ++p) {
    int64_t row = 0;
    for (; row + kRows <= t.rows_count; row += kRows) Panel<kBits, kRows>(t, p, row);
    for (; row + 2 <= t.rows_count; row += 2) Panel<kBits, 2>(t, p, row);
    if (row < t.rows_count) Panel<kBits, 1>(t, p, row);
  }
}

MGE_VNNI void Run(const PackedInt8Task& t, int64_t p0, int64_t p1) {
  if (t.size.bits == 4) return RunBits<4>(t, p0, p1);
  RunBits<8>(t, p0, p1);
}

constexpr auto kRun = Run;
#else
constexpr void (*kRun)(const PackedInt8Task&, int64_t, int64_t) = nullptr;
#endif

}  // namespace

extern const PackedInt8Table kPackedInt8;
const PackedInt8Table kPackedInt8 = {kF, Pack, Round, kRun};

}  // namespace mge::cpu::MGE_CPU_ISA
