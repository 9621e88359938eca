// SPDX-License-Identifier: Apache-2.0
#include "vec/int8.h"

#include "vec/int8_finish.h"

namespace mge::cpu::MGE_CPU_ISA {
namespace {

constexpr int kMaxPanels = 4;  // of a tile
constexpr int kLd = kMaxPanels * kInt8Columns;

// Computes the sums of some rows of A and panels of B. A row of sums has kLd elements.
using TileFn = void (*)(const uint8_t* a, int64_t stride, const uint8_t* b, int64_t panel_bytes, int64_t groups,
                        int32_t* sums);

MGE_INLINE int32_t FourBytes(const uint8_t* p) {
  int32_t four;
  __builtin_memcpy(&four, p, 4);
  return four;
}

// ---------------------------------------------------------------- tiles

#if defined(__AVX512F__)

template <bool ASigned, int Rows, int Panels>
MGE_VNNI void VnniTile(const uint8_t* a, int64_t stride, const uint8_t* b, int64_t panel_bytes, int64_t groups,
                       int32_t* sums) {
  __m512i sum[Rows][Panels];
  MGE_UNROLL
  for (int r = 0; r < Rows; ++r) {
    MGE_UNROLL
    for (int p = 0; p < Panels; ++p) sum[r][p] = _mm512_setzero_si512();
  }
  for (int64_t g = 0; g < groups; ++g, a += 4, b += 64) {
    __m512i w[Panels];
    MGE_UNROLL
    for (int p = 0; p < Panels; ++p) w[p] = _mm512_loadu_si512(b + p * panel_bytes);
    MGE_UNROLL
    for (int r = 0; r < Rows; ++r) {
      const __m512i x = _mm512_set1_epi32(FourBytes(a + r * stride));
      MGE_UNROLL
      for (int p = 0; p < Panels; ++p) {
        sum[r][p] = ASigned ? _mm512_dpbusd_epi32(sum[r][p], w[p], x) : _mm512_dpbusd_epi32(sum[r][p], x, w[p]);
      }
    }
  }
  MGE_UNROLL
  for (int r = 0; r < Rows; ++r) {
    MGE_UNROLL
    for (int p = 0; p < Panels; ++p) _mm512_storeu_si512(sums + r * kLd + p * 16, sum[r][p]);
  }
}

struct VnniTiles {
  static constexpr int kPanels = 4;
  static constexpr int Rows(int panels) { return panels == 4 ? 6 : 12; }
  template <bool ASigned, int R, int P>
  static constexpr TileFn kTile = VnniTile<ASigned, R, P>;
};

#elif defined(__AVX2__)

template <bool ASigned, int Rows, int Panels>
MGE_VNNI void VnniTile(const uint8_t* a, int64_t stride, const uint8_t* b, int64_t panel_bytes, int64_t groups,
                       int32_t* sums) {
  static_assert(Panels == 1);
  (void)panel_bytes;
  __m256i sum[Rows][2];
  MGE_UNROLL
  for (int r = 0; r < Rows; ++r) sum[r][0] = sum[r][1] = _mm256_setzero_si256();
  for (int64_t g = 0; g < groups; ++g, a += 4, b += 64) {
    const __m256i w[2] = {_mm256_loadu_si256((const __m256i*)b), _mm256_loadu_si256((const __m256i*)(b + 32))};
    MGE_UNROLL
    for (int r = 0; r < Rows; ++r) {
      const __m256i x = _mm256_set1_epi32(FourBytes(a + r * stride));
      MGE_UNROLL
      for (int v = 0; v < 2; ++v) {
        sum[r][v] = ASigned ? _mm256_dpbusd_avx_epi32(sum[r][v], w[v], x) : _mm256_dpbusd_avx_epi32(sum[r][v], x, w[v]);
      }
    }
  }
  MGE_UNROLL
  for (int r = 0; r < Rows; ++r) {
    _mm256_storeu_si256((__m256i*)(sums + r * kLd), sum[r][0]);
    _mm256_storeu_si256((__m256i*)(sums + r * kLd + 8), sum[r][1]);
  }
}

struct VnniTiles {
  static constexpr int kPanels = 1;
  static constexpr int Rows(int) { return 6; }
  template <bool ASigned, int R, int P>
  static constexpr TileFn kTile = VnniTile<ASigned, R, P>;
};
#endif

#if defined(__AVX512F__)

// Widens bytes to 16 bits and adds pairs of products. A vector contains the sums of the even and odd pairs of 8 columns.
template <bool ASigned, int Rows, int Panels>
void PlainTile(const uint8_t* a, int64_t stride, const uint8_t* b, int64_t panel_bytes, int64_t groups, int32_t* sums) {
  static_assert(Panels == 1);
  (void)panel_bytes;
  __m512i sum[Rows][2];
  MGE_UNROLL
  for (int r = 0; r < Rows; ++r) sum[r][0] = sum[r][1] = _mm512_setzero_si512();
  for (int64_t g = 0; g < groups; ++g, a += 4, b += 64) {
    __m512i w[2];
    MGE_UNROLL
    for (int v = 0; v < 2; ++v) {
      const __m256i bytes = _mm256_loadu_si256((const __m256i*)(b + 32 * v));
      w[v] = ASigned ? _mm512_cvtepu8_epi16(bytes) : _mm512_cvtepi8_epi16(bytes);
    }
    MGE_UNROLL
    for (int r = 0; r < Rows; ++r) {
      const __m256i four = _mm256_set1_epi32(FourBytes(a + r * stride));
      const __m512i x = ASigned ? _mm512_cvtepi8_epi16(four) : _mm512_cvtepu8_epi16(four);
      MGE_UNROLL
      for (int v = 0; v < 2; ++v) sum[r][v] = _mm512_add_epi32(sum[r][v], _mm512_madd_epi16(x, w[v]));
    }
  }
  MGE_UNROLL
  for (int r = 0; r < Rows; ++r) {
    MGE_UNROLL
    for (int v = 0; v < 2; ++v) {
      const __m512i pairs = _mm512_add_epi32(sum[r][v], _mm512_srli_epi64(sum[r][v], 32));
      _mm256_storeu_si256((__m256i*)(sums + r * kLd + 8 * v), _mm512_cvtepi64_epi32(pairs));
    }
  }
}

struct PlainTiles {
  static constexpr int kPanels = 1;
  static constexpr int Rows(int) { return 6; }
  template <bool ASigned, int R, int P>
  static constexpr TileFn kTile = PlainTile<ASigned, R, P>;
};

#elif defined(__AVX2__)

// Widens bytes to 16 bits and adds pairs of products. A vector contains the sums of the even and odd pairs of 4 columns.
template <bool ASigned, int Rows, int Panels>
void PlainTile(const uint8_t* a, int64_t stride, const uint8_t* b, int64_t panel_bytes, int64_t groups, int32_t* sums) {
  static_assert(Panels == 1);
  (void)panel_bytes;
  __m256i sum[Rows][4];
  MGE_UNROLL
  for (int r = 0; r < Rows; ++r) {
    MGE_UNROLL
    for (int v = 0; v < 4; ++v) sum[r][v] = _mm256_setzero_si256();
  }
  for (int64_t g = 0; g < groups; ++g, a += 4, b += 64) {
    __m256i x[Rows];
    MGE_UNROLL
    for (int r = 0; r < Rows; ++r) {
      const __m128i four = _mm_set1_epi32(FourBytes(a + r * stride));
      x[r] = ASigned ? _mm256_cvtepi8_epi16(four) : _mm256_cvtepu8_epi16(four);
    }
    MGE_UNROLL
    for (int v = 0; v < 4; ++v) {
      const __m128i bytes = _mm_loadu_si128((const __m128i*)(b + 16 * v));
      const __m256i w = ASigned ? _mm256_cvtepu8_epi16(bytes) : _mm256_cvtepi8_epi16(bytes);
      MGE_UNROLL
      for (int r = 0; r < Rows; ++r) sum[r][v] = _mm256_add_epi32(sum[r][v], _mm256_madd_epi16(x[r], w));
    }
  }
  MGE_UNROLL
  for (int r = 0; r < Rows; ++r) {
    MGE_UNROLL
    for (int h = 0; h < 2; ++h) {
      const __m256i pairs = _mm256_hadd_epi32(sum[r][2 * h], sum[r][2 * h + 1]);
      _mm256_storeu_si256((__m256i*)(sums + r * kLd + 8 * h), _mm256_permute4x64_epi64(pairs, 0xd8));
    }
  }
}

struct PlainTiles {
  static constexpr int kPanels = 1;
  static constexpr int Rows(int) { return 3; }
  template <bool ASigned, int R, int P>
  static constexpr TileFn kTile = PlainTile<ASigned, R, P>;
};

#elif defined(__SSE2__)

// The same with vectors of 2 columns.
template <bool ASigned, int Rows, int Panels>
void PlainTile(const uint8_t* a, int64_t stride, const uint8_t* b, int64_t panel_bytes, int64_t groups, int32_t* sums) {
  static_assert(Rows == 1 && Panels == 1);
  (void)stride;
  (void)panel_bytes;
  // Widen the low or high 8 bytes.
  auto low = [](__m128i bytes, bool is_signed) {
    return is_signed ? _mm_srai_epi16(_mm_unpacklo_epi8(bytes, bytes), 8) : _mm_unpacklo_epi8(bytes, _mm_setzero_si128());
  };
  auto high = [](__m128i bytes, bool is_signed) {
    return is_signed ? _mm_srai_epi16(_mm_unpackhi_epi8(bytes, bytes), 8) : _mm_unpackhi_epi8(bytes, _mm_setzero_si128());
  };
  __m128i sum[8];
  MGE_UNROLL
  for (int v = 0; v < 8; ++v) sum[v] = _mm_setzero_si128();
  for (int64_t g = 0; g < groups; ++g, a += 4, b += 64) {
    const __m128i x = low(_mm_set1_epi32(FourBytes(a)), ASigned);
    MGE_UNROLL
    for (int v = 0; v < 4; ++v) {
      const __m128i bytes = _mm_loadu_si128((const __m128i*)(b + 16 * v));
      sum[2 * v] = _mm_add_epi32(sum[2 * v], _mm_madd_epi16(x, low(bytes, !ASigned)));
      sum[2 * v + 1] = _mm_add_epi32(sum[2 * v + 1], _mm_madd_epi16(x, high(bytes, !ASigned)));
    }
  }
  MGE_UNROLL
  for (int v = 0; v < 4; ++v) {
    const __m128 p = _mm_castsi128_ps(sum[2 * v]), q = _mm_castsi128_ps(sum[2 * v + 1]);
    const __m128i even = _mm_castps_si128(_mm_shuffle_ps(p, q, 0x88)), odd = _mm_castps_si128(_mm_shuffle_ps(p, q, 0xdd));
    _mm_storeu_si128((__m128i*)(sums + 4 * v), _mm_add_epi32(even, odd));
  }
}

struct PlainTiles {
  static constexpr int kPanels = 1;
  static constexpr int Rows(int) { return 1; }
  template <bool ASigned, int R, int P>
  static constexpr TileFn kTile = PlainTile<ASigned, R, P>;
};

#else

template <bool ASigned, int Rows, int Panels>
void PlainTile(const uint8_t* a, int64_t stride, const uint8_t* b, int64_t panel_bytes, int64_t groups, int32_t* sums) {
  static_assert(Rows == 1 && Panels == 1);
  (void)stride;
  (void)panel_bytes;
  uint32_t sum[kInt8Columns] = {};
  for (int64_t g = 0; g < groups; ++g, a += 4, b += 64) {
    for (int i = 0; i < 4; ++i) {
      const int32_t x = ASigned ? static_cast<int8_t>(a[i]) : a[i];
      for (int c = 0; c < kInt8Columns; ++c) {
        const int32_t w = ASigned ? b[4 * c + i] : static_cast<int8_t>(b[4 * c + i]);
        sum[c] += static_cast<uint32_t>(x * w);
      }
    }
  }
  for (int c = 0; c < kInt8Columns; ++c) sums[c] = static_cast<int32_t>(sum[c]);
}

struct PlainTiles {
  static constexpr int kPanels = 1;
  static constexpr int Rows(int) { return 1; }
  template <bool ASigned, int R, int P>
  static constexpr TileFn kTile = PlainTile<ASigned, R, P>;
};
#endif

// ---------------------------------------------------------------- after the sums

constexpr int kMaxRows = 48;  // rows of A per block

template <Int8Result Result>
void Finish(const Int8Task& t, const int32_t* sums, const int32_t* a_sums, int64_t a_sums_stride, int64_t row, int rows,
            int64_t column, int64_t columns) {
  for (int64_t v = 0; v < columns; v += kF) {
    const int lanes = static_cast<int>(columns - v < kF ? columns - v : kF);
    auto ints = [&](const int32_t* p) { return (VI)Load(reinterpret_cast<const float*>(p + column + v)); };
    VI start = t.start ? ints(t.start) : VI{};
    if (t.b_sums) start -= t.a_zero * ints(t.b_sums);
    const bool zeros = t.b_zero || t.b_one_zero;
    const VI zero = t.b_zero ? ints(t.b_zero) : SplatI(t.b_one_zero);
    const VF scale = t.scale ? t.a_scale * Load(t.scale + column + v) : VF{};
    const VF bias = t.bias ? Load(t.bias + column + v) : VF{};
    for (int r = 0; r < rows; ++r) {
      VI sum = (VI)Load(reinterpret_cast<const float*>(sums + r * kLd + v)) + start;
      if (zeros) sum -= zero * (a_sums[r * a_sums_stride] - static_cast<int32_t>(t.k) * t.a_zero);
      FinishVector<Result>(t, sum, (row + r) * t.ldc + column + v, lanes, scale, bias);
    }
  }
}

#if defined(__AVX512F__)
// The same to bytes, for the columns of some panels, if no other steps are needed.
template <bool Signed, int Panels, bool Whole, Steps kSteps>
void FinishBytes(const Int8Task& t, const int32_t* sums, const int32_t* a_sums, int64_t row, int rows, int64_t column,
                 int64_t columns) {
  if (Whole) columns = Panels * kInt8Columns;
  const auto finish = Finish64<Signed, kSteps>::Of(t, column, columns);
  const __m512i order = _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
  for (int r = 0; r < rows; ++r) {
    VI sum[Panels];
    for (int v = 0; v < Panels; ++v) sum[v] = (VI)_mm512_load_si512(sums + r * kLd + 16 * v);
    const __m512i bytes =
        _mm512_permutexvar_epi32(order, finish.template Bytes<Panels>(sum, SplatI(t.b_one_zero * a_sums[r])));
    StoreFirst(static_cast<uint8_t*>(t.c) + (row + r) * t.ldc + column, bytes, columns);
  }
}

using BytesFinishFn = void (*)(const Int8Task&, const int32_t*, const int32_t*, int64_t, int, int64_t, int64_t);
template <bool Signed, int Panels>
BytesFinishFn BytesFn(const Int8Task& t, int64_t columns) {
  const bool whole = columns == Panels * kInt8Columns;
  if (t.bias || t.divisor != 1) {
    return whole ? FinishBytes<Signed, Panels, true, Steps::kAll> : FinishBytes<Signed, Panels, false, Steps::kAll>;
  }
  if (t.b_one_zero) {
    return whole ? FinishBytes<Signed, Panels, true, Steps::kRowTerm> : FinishBytes<Signed, Panels, false, Steps::kRowTerm>;
  }
  return whole ? FinishBytes<Signed, Panels, true, Steps::kScale> : FinishBytes<Signed, Panels, false, Steps::kScale>;
}
#endif

using FinishFn = void (*)(const Int8Task&, const int32_t*, const int32_t*, int64_t, int64_t, int, int64_t, int64_t);
constexpr FinishFn kFinish[] = {Finish<Int8Result::kInt32>, Finish<Int8Result::kFloat>, Finish<Int8Result::kAddFloat>,
                                Finish<Int8Result::kUint8>, Finish<Int8Result::kInt8>};

// ---------------------------------------------------------------- copies of A

// Copies n bytes. May write up to 64 bytes beyond the end, which later bytes overwrite.
MGE_INLINE void CopyBytes(uint8_t* out, const uint8_t* in, int64_t n) {
  int64_t i = 0;
#if defined(__AVX512F__)
  for (; i + 64 <= n; i += 64) _mm512_storeu_si512(out + i, _mm512_loadu_si512(in + i));
  const __mmask64 rest = _bzhi_u64(~uint64_t{0}, static_cast<uint32_t>(n - i));
  if (i < n) _mm512_storeu_si512(out + i, _mm512_maskz_loadu_epi8(rest, in + i));
#else
  for (; i + 16 <= n; i += 16) __builtin_memcpy(out + i, in + i, 16);
  if (n >= 16) return __builtin_memcpy(out + n - 16, in + n - 16, 16), void();
  for (; i + 4 <= n; i += 4) __builtin_memcpy(out + i, in + i, 4);
  for (; i < n; ++i) out[i] = in[i];
#endif
}
MGE_INLINE void FillBytes(uint8_t* out, uint8_t value, int64_t n) {
  for (int64_t i = 0; i < n; i += 16) {
    for (int k = 0; k < 16; ++k) out[i + k] = value;
  }
}

// Writes the windows m0..m1 of the image as rows.
void CopyWindows(const Int8A& a, int64_t m0, int64_t m1, int64_t pitch, uint8_t* out) {
  const ConvWindows& g = *a.windows;
  // If all channels are read and taps are neighbours, a whole row of the window is contiguous.
  const bool whole = g.dw == 1 && g.pixel == g.channels;
  const int64_t taps = whole ? g.kw : 1, plane = g.h * g.w * g.pixel;
  const bool entire = whole && g.d == 1 && g.kd == 1 && g.pd == 0;
  int64_t x = m0 % g.ow, y = m0 / g.ow % g.oh, z = m0 / (g.ow * g.oh) % g.od, n = m0 / (g.ow * g.oh * g.od);
  for (int64_t i = m0; i < m1; ++i, out += pitch) {
    const uint8_t* image = static_cast<const uint8_t*>(a.data) + n * g.d * plane;
    uint8_t* o = out;
    const int64_t left = x * g.sw - g.pw, top = y * g.sh - g.ph;
    if (entire && left >= 0 && left + g.kw <= g.w && top >= 0 && top + (g.kh - 1) * g.dh < g.h) {  // the common case
      const uint8_t* in = image + (top * g.w + left) * g.pixel;
      for (int64_t ky = 0; ky < g.kh; ++ky, in += g.dh * g.w * g.pixel, o += g.kw * g.channels) {
        CopyBytes(o, in, g.kw * g.channels);
      }
    }
    for (int64_t kz = o == out ? 0 : g.kd; kz < g.kd; ++kz) {
      const int64_t iz = z * g.sd - g.pd + kz * g.dd;
      for (int64_t ky = 0; ky < g.kh; ++ky) {
        const int64_t iy = y * g.sh - g.ph + ky * g.dh;
        const bool inside = iz >= 0 && iz < g.d && iy >= 0 && iy < g.h;
        for (int64_t kx = 0; kx < g.kw; kx += taps) {
          const int64_t ix = x * g.sw - g.pw + kx * g.dw;
          int64_t low = ix < 0 ? -ix : 0, high = g.w - ix < taps ? g.w - ix : taps;  // range of taps inside the image
          if (!inside || low >= high) low = high = taps;
          if (low > 0) FillBytes(o, a.outside, low * g.channels);
          if (low < high) {
            CopyBytes(o + low * g.channels, image + iz * plane + (iy * g.w + ix + low) * g.pixel, (high - low) * g.channels);
          }
          if (high < taps) FillBytes(o + high * g.channels, a.outside, (taps - high) * g.channels);
          o += taps * g.channels;
        }
      }
    }
    if (++x < g.ow) continue;
    x = 0;
    if (++y < g.oh) continue;
    y = 0;
    if (++z < g.od) continue;
    z = 0;
    ++n;
  }
}

// Returns the sum of n bytes.
template <typename B>
int32_t SumOf(const B* p, int64_t n) {
  int32_t sum = 0;
  int64_t i = 0;
#if defined(__AVX2__)
  // The instruction adds unsigned bytes: 128 is added to signed ones, and subtracted from the sum.
  constexpr int kFlip = static_cast<B>(-1) < 0 ? 128 : 0;
  __m256i sums = _mm256_setzero_si256();
  auto add = [&](__m256i bytes) {
    const __m256i flipped = _mm256_xor_si256(bytes, _mm256_set1_epi8(static_cast<char>(kFlip)));
    sums = _mm256_add_epi64(sums, _mm256_sad_epu8(flipped, _mm256_setzero_si256()));
  };
  for (; i + 32 <= n; i += 32) add(_mm256_loadu_si256((const __m256i*)(p + i)));
  int64_t added = i;
#if defined(__AVX512F__)
  if (i < n) {
    add(_mm256_maskz_loadu_epi8(_bzhi_u32(~uint32_t{0}, static_cast<uint32_t>(n - i)), p + i));
    added += 32;
    i = n;
  }
#endif
  const __m128i half = _mm_add_epi64(_mm256_castsi256_si128(sums), _mm256_extracti128_si256(sums, 1));
  sum = static_cast<int32_t>(_mm_cvtsi128_si64(half) + _mm_extract_epi64(half, 1) - added * kFlip);
#endif
  for (; i < n; ++i) sum += p[i];
  return sum;
}

// ---------------------------------------------------------------- the product

// A block of rows, with the sums of its rows.
struct Block {
  const uint8_t* data;
  int64_t pitch;
  const int32_t* sums;
  int64_t sums_stride;
};

template <typename Tiles, bool ASigned, int Panels, int Rows>
int64_t RowTiles(const Int8Task& t, const Block& block, int64_t row, int64_t first, int64_t rows, int64_t panel) {
  const int64_t groups = Int8Bytes(t.k) / 4, panel_bytes = groups * 4 * kInt8Columns, column = panel * kInt8Columns;
  const int64_t columns = t.n - column < Panels * kInt8Columns ? t.n - column : Panels * kInt8Columns;
  alignas(64) int32_t sums[Rows * kLd];
  while (rows - first >= Rows) {
    Tiles::template kTile<ASigned, Rows, Panels>(block.data + first * block.pitch, block.pitch,
                                                 static_cast<const uint8_t*>(t.b) + panel * panel_bytes, panel_bytes, groups,
                                                 sums);
#if defined(__AVX512F__)
    const bool bytes = t.result == Int8Result::kUint8 || t.result == Int8Result::kInt8;
    if (bytes && HasSteps(t)) {
      const bool is_signed = t.result == Int8Result::kInt8;
      (is_signed ? BytesFn<true, Panels>(t, columns) : BytesFn<false, Panels>(t, columns))(
          t, sums, block.sums + first, row + first, Rows, column, columns);
      first += Rows;
      continue;
    }
#endif
    kFinish[static_cast<int>(t.result)](t, sums, block.sums + first * block.sums_stride, block.sums_stride, row + first,
                                        Rows, column, columns);
    first += Rows;
  }
  if constexpr (Rows > 1) {
    constexpr int kNext = Rows == 12 ? 6 : Rows - 1;
    if (first < rows) first = RowTiles<Tiles, ASigned, Panels, kNext>(t, block, row, first, rows, panel);
  }
  return first;
}

template <typename Tiles, bool ASigned, int Panels>
void PanelTiles(const Int8Task& t, const Block& block, int64_t row, int64_t rows, int64_t p0, int64_t p1) {
  for (; p0 + Panels <= p1; p0 += Panels) {
    RowTiles<Tiles, ASigned, Panels, Tiles::Rows(Panels)>(t, block, row, 0, rows, p0);
  }
  if constexpr (Panels > 1) PanelTiles<Tiles, ASigned, Panels / 2>(t, block, row, rows, p0, p1);
}

template <typename Tiles>
void Run(const Int8Task& t, int64_t m0, int64_t m1, int64_t p0, int64_t p1) {
  alignas(64) uint8_t copy[kInt8MaxCopied + 192];
  int32_t row_sums[kMaxRows] = {};
  const int64_t bytes = Int8Bytes(t.k);
  const bool copies = t.a.windows || !t.a.padded;
  int64_t pitch = (bytes + 63) / 64 * 64;
  if (pitch % 1024 == 0) pitch += 64;  // rows would share cache sets
  int64_t most = kMaxRows;
  if (copies && most * pitch > kInt8MaxCopied) most = kInt8MaxCopied / pitch > 1 ? kInt8MaxCopied / pitch : 1;
  for (int64_t m = m0; m < m1; m += most) {
    const int64_t rows = m1 - m < most ? m1 - m : most;
    Block block = {copy, pitch, row_sums, 1};
    if (t.a.windows) {
      CopyWindows(t.a, m, m + rows, pitch, copy);
    } else {
      const uint8_t* a = static_cast<const uint8_t*>(t.a.data) + m * t.a.stride;
      if (copies) {
        for (int64_t r = 0; r < rows; ++r) CopyBytes(copy + r * pitch, a + r * t.a.stride, t.k);
      } else {
        block.data = a;
        block.pitch = t.a.stride;
      }
    }
    if (t.a_sums) {
      block.sums = t.a_sums + m * t.a_sums_stride;
      block.sums_stride = t.a_sums_stride;
    } else if (t.b_zero || t.b_one_zero) {
      for (int64_t r = 0; r < rows; ++r) {
        const uint8_t* p = block.data + r * block.pitch;
        row_sums[r] = t.a.is_signed ? SumOf(reinterpret_cast<const int8_t*>(p), t.k) : SumOf(p, t.k);
      }
    }
    if (t.a.is_signed)
      PanelTiles<Tiles, true, Tiles::kPanels>(t, block, m, rows, p0, p1);
    else
      PanelTiles<Tiles, false, Tiles::kPanels>(t, block, m, rows, p0, p1);
  }
}

// ---------------------------------------------------------------- packing, quantizing

void Pack(const Int8Source& s, int64_t p0, int64_t p1, void* out, int32_t* sums) {
  const int64_t k = s.taps * s.channels, panel_bytes = Int8Bytes(k) * kInt8Columns;
  const uint8_t flip = s.is_signed == s.packs_signed ? 0 : 128;
  for (int64_t p = p0; p < p1; ++p) {
    uint8_t* panel = static_cast<uint8_t*>(out) + p * panel_bytes;
    const uint8_t* source = static_cast<const uint8_t*>(s.data) + p * kInt8Columns * s.column_stride;
    const int64_t columns = s.n - p * kInt8Columns < kInt8Columns ? s.n - p * kInt8Columns : kInt8Columns;
    if (columns < kInt8Columns || k % 4 != 0) __builtin_memset(panel, 0, static_cast<size_t>(panel_bytes));
    int64_t packed = 0;
#if defined(__x86_64__)
    if (s.column_stride == 1 && s.taps == 1 && columns == kInt8Columns) {
      const __m128i flips = _mm_set1_epi8(static_cast<char>(flip));
      for (; packed + 4 <= k; packed += 4) {
        __m128i row[4];
        for (int i = 0; i < 4; ++i) {
          const uint8_t* from = source + (packed + i) * s.channel_stride;
          row[i] = _mm_xor_si128(_mm_loadu_si128((const __m128i*)from), flips);
        }
        const __m128i low01 = _mm_unpacklo_epi8(row[0], row[1]), low23 = _mm_unpacklo_epi8(row[2], row[3]);
        const __m128i high01 = _mm_unpackhi_epi8(row[0], row[1]), high23 = _mm_unpackhi_epi8(row[2], row[3]);
        auto* to = (__m128i*)(panel + packed * kInt8Columns);
        _mm_storeu_si128(to, _mm_unpacklo_epi16(low01, low23));
        _mm_storeu_si128(to + 1, _mm_unpackhi_epi16(low01, low23));
        _mm_storeu_si128(to + 2, _mm_unpacklo_epi16(high01, high23));
        _mm_storeu_si128(to + 3, _mm_unpackhi_epi16(high01, high23));
      }
    }
#endif
    for (int64_t t = 0; t < s.taps; ++t) {
      for (int64_t c = packed; c < s.channels; ++c) {
        const int64_t at = t * s.channels + c;
        const uint8_t* from = source + t * s.tap_stride + c * s.channel_stride;
        uint8_t* to = panel + at / 4 * 64 + at % 4;
        for (int64_t j = 0; j < columns; ++j) to[4 * j] = from[j * s.column_stride] ^ flip;
      }
    }
    for (int64_t j = 0; j < kInt8Columns; j += kF) {  // a lane has the 4 bytes of a column
      VI sum = {};
      for (int64_t g = 0; g < panel_bytes; g += 64) {
        VI four;
        __builtin_memcpy(&four, panel + g + 4 * j, kVectorBytes);
        for (int shift = 24; shift >= 0; shift -= 8) {
          const VI byte = four << shift;
          sum += s.packs_signed ? byte >> 24 : (VI)((VU)byte >> 24);
        }
      }
      __builtin_memcpy(sums + p * kInt8Columns + j, &sum, kVectorBytes);
    }
  }
}

int32_t Quantize(const float* x, int64_t n, float scale, float zero, uint8_t* out) {
  int64_t i = 0;
  int32_t sum = 0;
  VI sums = {};
  const auto zero_point = static_cast<int32_t>(zero);
  for (; i + kF <= n; i += kF) {
    const VI q = Quantized(Load(x + i) / scale, zero_point, 0, 255);
    sums += q;
    StoreBytes(out + i, q);
  }
  if (i < n) {
    const VI q = Quantized(LoadN(x + i, static_cast<int>(n - i)) / scale, zero_point, 0, 255);
    StoreBytesN(out + i, q, static_cast<int>(n - i));
    for (int k = 0; k < n - i; ++k) sum += q[k];
  }
  for (int k = 0; k < kF; ++k) sum += sums[k];
  for (i = n; i < Int8Bytes(n); ++i) out[i] = 0;
  return sum;
}

}  // namespace

#if defined(__AVX2__)
extern const Int8Table kInt8 = {Run<PlainTiles>, Run<VnniTiles>, Pack, Quantize};
#else
extern const Int8Table kInt8 = {Run<PlainTiles>, nullptr, Pack, Quantize};
#endif

}  // namespace mge::cpu::MGE_CPU_ISA
