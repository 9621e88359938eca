// SPDX-License-Identifier: Apache-2.0
#include "vec/packed_weights.h"

#include "vec/simd.h"

namespace mge::cpu::MGE_CPU_ISA {
namespace {

constexpr int64_t kColumnsAtATime = 32;  // their weights stay in the cache while rows change

MGE_INLINE VU LoadBytes(const uint8_t* p) {
  VU v;
  __builtin_memcpy(&v, p, kVectorBytes);
  return v;
}
MGE_INLINE VU LoadBytesN(const uint8_t* p, int64_t n) {
  uint8_t bytes[kVectorBytes] = {};
  for (int64_t i = 0; i < n; ++i) bytes[i] = p[i];
  return LoadBytes(bytes);
}

// Returns the weights number `part` of all lanes as floats.
template <int kBits>
MGE_INLINE VF Unpacked(VU v, int part) {
  VU shifted = v >> static_cast<uint32_t>(part * kBits);
#if defined(__AVX512F__)
  if constexpr (kBits == 4) {  // the table's index is the low 4 bits of a lane
    const __m512 numbers = _mm512_set_ps(15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0);
    return (VF)_mm512_permutexvar_ps((__m512i)shifted, numbers);
  }
#endif
  return ToVF((VI)(shifted & ((1u << kBits) - 1)));
}

// Returns a vector in which lane l has the number of its block, where a register has kBlocks blocks.
template <int kBlocks>
MGE_INLINE VF Spread(const float* p) {
  if constexpr (kBlocks == 1) return Splat(*p);
  if constexpr (kBlocks >= kF) return Load(p);
#if defined(__AVX512F__)
  if constexpr (kBlocks == 2) return (VF)_mm512_mask_blend_ps(0xff00, (__m512)Splat(p[0]), (__m512)Splat(p[1]));
  if constexpr (kBlocks == 4) {
    const __m512i lanes = _mm512_set_epi32(3, 3, 3, 3, 2, 2, 2, 2, 1, 1, 1, 1, 0, 0, 0, 0);
    return (VF)_mm512_permutexvar_ps(lanes, _mm512_castps128_ps512(_mm_loadu_ps(p)));
  }
  if constexpr (kBlocks == 8) {
    const __m512i lanes = _mm512_set_epi32(7, 7, 6, 6, 5, 5, 4, 4, 3, 3, 2, 2, 1, 1, 0, 0);
    return (VF)_mm512_permutexvar_ps(lanes, _mm512_castps256_ps512(_mm256_loadu_ps(p)));
  }
#elif defined(__AVX2__)
  if constexpr (kBlocks == 2) return (VF)_mm256_blend_ps((__m256)Splat(p[0]), (__m256)Splat(p[1]), 0xf0);
  if constexpr (kBlocks == 4) {
    const __m256i lanes = _mm256_set_epi32(3, 3, 2, 2, 1, 1, 0, 0);
    return (VF)_mm256_permutevar8x32_ps(_mm256_castps128_ps256(_mm_loadu_ps(p)), lanes);
  }
#endif
  VF v;
  for (int i = 0; i < kF; ++i) v[i] = p[i * kBlocks / kF];
  return v;
}

MGE_INLINE float Total(VF v) {
#if defined(__AVX512F__)
  return _mm512_reduce_add_ps((__m512)v);
#else
  return Sum(v);
#endif
}

// Computes one column of kRows rows. kBlocks is the number of blocks of a register; if a block has several registers, it is 1.
template <int kBits, int kBlocks, int kRows>
MGE_INLINE void Column(const PackedTask& t, int64_t registers, int64_t row, int64_t n) {
  constexpr int kParts = 32 / kBits;
  const PackedWeights& w = t.weights;
  const int64_t bytes = w.blocks * w.block * kBits / 8, whole = bytes / kVectorBytes;
  const int64_t per_block = kBlocks > 1 ? 1 : w.block / (kParts * kF);  // registers of a block
  const uint8_t* b = w.data + n * bytes;
  const float* scales = w.scales + n * w.blocks;
  const float* zeros = w.zeros ? w.zeros + n * w.blocks : nullptr;
  const int64_t row_floats = registers * kF * kParts;
  const float* a = t.rows + row * row_floats;
  const float* sums = t.sums + row * registers * kF;
  const VF middle = Splat(static_cast<float>(1 << (kBits - 1)));
  VF total[kRows] = {};
  auto add = [&](VU v, VF scale, VF zero, int64_t i) __attribute__((always_inline)) {
    VF even[kRows], odd[kRows];
    for (int r = 0; r < kRows; ++r) {
      even[r] = -(zero * Load(sums + r * registers * kF + i * kF));
      odd[r] = VF{};
    }
    const float* x = a + i * kF * kParts;
    MGE_UNROLL for (int j = 0; j < kParts; j += 2) {
      const VF first = Unpacked<kBits>(v, j), second = Unpacked<kBits>(v, j + 1);
      for (int r = 0; r < kRows; ++r) {
        even[r] = Fma(first, Load(x + r * row_floats + j * kF), even[r]);
        odd[r] = Fma(second, Load(x + r * row_floats + (j + 1) * kF), odd[r]);
      }
    }
    for (int r = 0; r < kRows; ++r) total[r] = Fma(scale, even[r] + odd[r], total[r]);
  };
  for (int64_t i = 0; i < whole; ++i) {
    const int64_t at = kBlocks > 1 ? i * kBlocks : i / per_block;
    add(LoadBytes(b + i * kVectorBytes), Spread<kBlocks>(scales + at), zeros ? Spread<kBlocks>(zeros + at) : middle, i);
  }
  if (whole < registers) {  // the last register is not full
    float scale[kBlocks] = {}, zero[kBlocks] = {};
    const int64_t at = kBlocks > 1 ? whole * kBlocks : whole / per_block;
    for (int64_t i = 0; i < kBlocks && at + i < w.blocks; ++i) {
      scale[i] = scales[at + i];
      zero[i] = zeros ? zeros[at + i] : static_cast<float>(1 << (kBits - 1));
    }
    add(LoadBytesN(b + whole * kVectorBytes, bytes - whole * kVectorBytes), Spread<kBlocks>(scale), Spread<kBlocks>(zero),
        whole);
  }
  const float bias = t.bias ? t.bias[n] : 0;
  for (int r = 0; r < kRows; ++r) t.c[(row + r) * t.ldc + n] = Total(total[r]) + bias;
}

template <int kBits, int kBlocks>
void Columns(const PackedTask& t, int64_t n0, int64_t n1) {
  const int64_t registers = PackedRegisters(t.weights.blocks, t.weights.block, kBits, kF);
  for (int64_t first = n0; first < n1; first += kColumnsAtATime) {
    const int64_t last = first + kColumnsAtATime < n1 ? first + kColumnsAtATime : n1;
    int64_t row = 0;
    for (; row + 4 <= t.rows_count; row += 4) {
      for (int64_t n = first; n < last; ++n) Column<kBits, kBlocks, 4>(t, registers, row, n);
    }
    for (; row < t.rows_count; ++row) {
      for (int64_t n = first; n < last; ++n) Column<kBits, kBlocks, 1>(t, registers, row, n);
    }
  }
}

template <int kBits>
void RunBits(const PackedTask& t, int64_t n0, int64_t n1) {
  constexpr int64_t kWeights = 32 / kBits * kF;  // of a register
  switch (t.weights.block >= kWeights ? 1 : kWeights / t.weights.block) {
    case 1: return Columns<kBits, 1>(t, n0, n1);
    case 2: return Columns<kBits, 2>(t, n0, n1);
    case 4: return Columns<kBits, 4>(t, n0, n1);
    case 8: return Columns<kBits, 8>(t, n0, n1);
    default: return Columns<kBits, 16>(t, n0, n1);
  }
}

void Run(const PackedTask& t, int64_t n0, int64_t n1) {
  if (t.weights.bits == 2) return RunBits<2>(t, n0, n1);
  if (t.weights.bits == 4) return RunBits<4>(t, n0, n1);
  RunBits<8>(t, n0, n1);
}

void Arrange(const float* a, int64_t k, int bits, int64_t registers, float* row, float* sums) {
  const int parts = 32 / bits;
  for (int64_t i = 0; i < registers; ++i) {
    for (int l = 0; l < kF; ++l) {
      float sum = 0;
      for (int j = 0; j < parts; ++j) {
        const int64_t at = (i * kF + l) * parts + j;
        const float x = at < k ? a[at] : 0;
        row[(i * parts + j) * kF + l] = x;
        sum += x;
      }
      sums[i * kF + l] = sum;
    }
  }
}

// Returns the words at p, p + stride and so on, in bytes. The last columns may be missing: the last one is then repeated.
MGE_INLINE VU Words(const uint8_t* p, int64_t stride, int64_t columns) {
  VU v;
  for (int64_t l = 0; l < kF; ++l) {
    uint32_t word;
    __builtin_memcpy(&word, p + (l < columns ? l : columns - 1) * stride, sizeof(word));
    v[l] = word;
  }
  return v;
}

// Lane l of a vector has the weights of column l, so the words of several columns are unpacked together.
template <int kBits>
void UnpackBits(const PackedWeights& w, int64_t k, int64_t n0, int64_t n1, int64_t columns, float* out) {
  constexpr int kParts = 32 / kBits;
  const int64_t bytes = w.blocks * w.block * kBits / 8, row = w.blocks * static_cast<int64_t>(sizeof(float));
  for (int64_t c = 0; c < columns; c += kF) {
    const int64_t first = n0 + c < n1 ? n0 + c : n1 - 1, left = n1 - first;
    for (int64_t block = 0; block < w.blocks; ++block) {
      const auto numbers = [&](const float* p) __attribute__((always_inline)) {
        return (VF)Words(reinterpret_cast<const uint8_t*>(p + first * w.blocks + block), row, left);
      };
      const VF scale = numbers(w.scales);
      const VF zero = w.zeros ? numbers(w.zeros) : Splat(static_cast<float>(1 << (kBits - 1)));
      const VF shift = -(zero * scale);
      for (int64_t at = block * w.block; at < (block + 1) * w.block && at < k; at += kParts) {
        const VU v = Words(w.data + first * bytes + at * kBits / 8, bytes, left);
        MGE_UNROLL for (int j = 0; j < kParts; ++j) {
          if (at + j < k) Store(out + (at + j) * columns + c, Fma(Unpacked<kBits>(v, j), scale, shift));
        }
      }
    }
  }
}

void Unpack(const PackedWeights& w, int64_t k, int64_t n0, int64_t n1, int64_t columns, float* out) {
  if (w.bits == 2) return UnpackBits<2>(w, k, n0, n1, columns, out);
  if (w.bits == 4) return UnpackBits<4>(w, k, n0, n1, columns, out);
  UnpackBits<8>(w, k, n0, n1, columns, out);
}

}  // namespace

extern const PackedTable kPackedProduct;
const PackedTable kPackedProduct = {kF, Arrange, Run, Unpack};

}  // namespace mge::cpu::MGE_CPU_ISA
