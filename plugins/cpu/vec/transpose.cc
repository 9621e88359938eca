// SPDX-License-Identifier: Apache-2.0
#include "vec/transpose.h"

#include "vec/simd.h"

namespace mge::cpu::MGE_CPU_ISA {
namespace {

template <typename T>
MGE_INLINE void Edge(const T* from, int64_t from_stride, T* to, int64_t to_stride, int64_t rows, int64_t columns) {
  for (int64_t c = 0; c < columns; ++c) {
    for (int64_t r = 0; r < rows; ++r) to[c * to_stride + r] = from[r * from_stride + c];
  }
}

#if defined(__AVX2__)
inline constexpr int kBlock4 = 8;
MGE_INLINE void Block(const uint32_t* from, int64_t fs, uint32_t* to, int64_t ts) {
  __m256 r[8], t[8];
  for (int i = 0; i < 8; ++i) r[i] = _mm256_loadu_ps((const float*)(from + i * fs));
  for (int i = 0; i < 8; i += 2) {
    t[i] = _mm256_unpacklo_ps(r[i], r[i + 1]);
    t[i + 1] = _mm256_unpackhi_ps(r[i], r[i + 1]);
  }
  for (int i = 0; i < 8; i += 4) {
    r[i] = _mm256_shuffle_ps(t[i], t[i + 2], 0x44);
    r[i + 1] = _mm256_shuffle_ps(t[i], t[i + 2], 0xee);
    r[i + 2] = _mm256_shuffle_ps(t[i + 1], t[i + 3], 0x44);
    r[i + 3] = _mm256_shuffle_ps(t[i + 1], t[i + 3], 0xee);
  }
  for (int i = 0; i < 4; ++i) {
    _mm256_storeu_ps((float*)(to + i * ts), _mm256_permute2f128_ps(r[i], r[i + 4], 0x20));
    _mm256_storeu_ps((float*)(to + (i + 4) * ts), _mm256_permute2f128_ps(r[i], r[i + 4], 0x31));
  }
}
#else
inline constexpr int kBlock4 = 4;
MGE_INLINE void Block(const uint32_t* from, int64_t fs, uint32_t* to, int64_t ts) {
  typedef uint32_t V __attribute__((vector_size(16)));
  V r[4];
  for (int i = 0; i < 4; ++i) __builtin_memcpy(&r[i], from + i * fs, 16);
  V a = __builtin_shuffle(r[0], r[1], V{0, 4, 1, 5}), b = __builtin_shuffle(r[0], r[1], V{2, 6, 3, 7});
  V c = __builtin_shuffle(r[2], r[3], V{0, 4, 1, 5}), d = __builtin_shuffle(r[2], r[3], V{2, 6, 3, 7});
  V o[4] = {__builtin_shuffle(a, c, V{0, 1, 4, 5}), __builtin_shuffle(a, c, V{2, 3, 6, 7}),
            __builtin_shuffle(b, d, V{0, 1, 4, 5}), __builtin_shuffle(b, d, V{2, 3, 6, 7})};
  for (int i = 0; i < 4; ++i) __builtin_memcpy(to + i * ts, &o[i], 16);
}
#endif

template <typename T>
MGE_INLINE void Block(const T* from, int64_t fs, T* to, int64_t ts) {
  for (int c = 0; c < 8; ++c) {
    for (int r = 0; r < 8; ++r) to[c * ts + r] = from[r * fs + c];
  }
}

// Bytes and 16-bit elements: vectors of 16 bytes, as many as a vector has elements. Interleaving the first half of the
// vectors with the second exchanges one bit of the row's and the column's number; all bits make a transposition.
typedef uint8_t V16 __attribute__((vector_size(16)));
typedef uint16_t V8 __attribute__((vector_size(16)));
MGE_INLINE V16 LowPairs(V16 a, V16 b) {
  return __builtin_shuffle(a, b, V16{0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23});
}
MGE_INLINE V16 HighPairs(V16 a, V16 b) {
  return __builtin_shuffle(a, b, V16{8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31});
}
MGE_INLINE V8 LowPairs(V8 a, V8 b) { return __builtin_shuffle(a, b, V8{0, 8, 1, 9, 2, 10, 3, 11}); }
MGE_INLINE V8 HighPairs(V8 a, V8 b) { return __builtin_shuffle(a, b, V8{4, 12, 5, 13, 6, 14, 7, 15}); }

template <typename V, int kStages, typename T>
MGE_INLINE void BlockByPairs(const T* from, int64_t fs, T* to, int64_t ts) {
  constexpr int kRows = 1 << kStages;
  V a[kRows], b[kRows];
  MGE_UNROLL
  for (int i = 0; i < kRows; ++i) __builtin_memcpy(&a[i], from + i * fs, 16);
  MGE_UNROLL
  for (int stage = 0; stage < kStages; ++stage) {
    MGE_UNROLL
    for (int i = 0; i < kRows / 2; ++i) {
      b[2 * i] = LowPairs(a[i], a[i + kRows / 2]);
      b[2 * i + 1] = HighPairs(a[i], a[i + kRows / 2]);
    }
    MGE_UNROLL
    for (int i = 0; i < kRows; ++i) a[i] = b[i];
  }
  MGE_UNROLL
  for (int i = 0; i < kRows; ++i) __builtin_memcpy(to + i * ts, &a[i], 16);
}
MGE_INLINE void Block(const uint8_t* from, int64_t fs, uint8_t* to, int64_t ts) { BlockByPairs<V16, 4>(from, fs, to, ts); }
MGE_INLINE void Block(const uint16_t* from, int64_t fs, uint16_t* to, int64_t ts) { BlockByPairs<V8, 3>(from, fs, to, ts); }

// A few rows whose columns lie together in the target, as the planes of an image become its pixels. The constant number of
// rows lets the compiler interleave vectors.
template <int kRows, typename T>
void Interleave(const T* __restrict from, int64_t fs, T* __restrict to, int64_t columns) {
  for (int64_t c = 0; c < columns; ++c) {
    for (int r = 0; r < kRows; ++r) to[c * kRows + r] = from[r * fs + c];
  }
}

template <typename T>
void Run(const void* source, int64_t fs, void* target, int64_t ts, int64_t rows, int64_t columns) {
  constexpr int kBlock = sizeof(T) == 1 ? 16 : sizeof(T) == 4 ? kBlock4 : 8;
  constexpr int64_t kRows = 64;  // source lines read together; they fit into the first-level cache
  auto* from = static_cast<const T*>(source);
  auto* to = static_cast<T*>(target);
  if (rows == ts && rows >= 2 && rows <= 4) {
    return rows == 2   ? Interleave<2>(from, fs, to, columns)
           : rows == 3 ? Interleave<3>(from, fs, to, columns)
                       : Interleave<4>(from, fs, to, columns);
  }
  for (int64_t r0 = 0; r0 < rows; r0 += kRows) {
    int64_t r1 = r0 + kRows < rows ? r0 + kRows : rows;
    int64_t c = 0;
    for (; c + kBlock <= columns; c += kBlock) {
      int64_t r = r0;
      for (; r + kBlock <= r1; r += kBlock) Block(from + r * fs + c, fs, to + c * ts + r, ts);
      if (r < r1) Edge(from + r * fs + c, fs, to + c * ts + r, ts, r1 - r, kBlock);
    }
    if (c < columns) Edge(from + r0 * fs + c, fs, to + c * ts + r0, ts, r1 - r0, columns - c);
  }
}

}  // namespace

extern const TransposeTable kTranspose = {{Run<uint8_t>, Run<uint16_t>, Run<uint32_t>, Run<uint64_t>}};

}  // namespace mge::cpu::MGE_CPU_ISA
