// SPDX-License-Identifier: Apache-2.0
#include "vec/gemm.h"

#include <string.h>

#include "vec/activation.h"

namespace mge::cpu::MGE_CPU_ISA {
namespace {

// Tiles use the whole register file: kRows x 2 vectors of sums, two of B and one of A.
#if defined(__AVX512F__)
constexpr int kRows = 14;
#else
constexpr int kRows = 6;
#endif
constexpr int kColumns = 2 * kF;
constexpr int64_t kAhead = 24;  // prefetch distance in rows of B
// row stride of the copy of A; not a power of two, so that rows do not share cache sets
constexpr int64_t kStride = kGemmMaxK + 16;

// The start values and the final steps of the sums of a tile.
struct Edges {
  const float* bias;
  const float* row_bias;
  int64_t row_bias_stride;
  const float* add;
  int64_t ld_add;
  bool clip;
  float lo, hi;
};

template <bool Tail>
MGE_INLINE VF LoadEdge(const float* p, int n) {
  return Tail ? LoadN(p, n) : Load(p);
}

// Computes rows of A (in the copy) times `Panels` panels of B, `Vectors` vectors of each. Tail: the last vector has `last`
// columns.
template <int Rows, int Vectors, int Panels, bool Tail>
__attribute__((noinline)) void Tile(const float* a, const float* b, int64_t ldb, int64_t panel_stride, int64_t kc, float* c,
                                    int64_t ldc, const Edges& e, int last) {
  constexpr int kN = Vectors * Panels;
  VF sum[Rows][kN];
  MGE_UNROLL
  for (int v = 0; v < kN; ++v) {
    bool tail = Tail && v == kN - 1;
    VF start = e.bias ? (tail ? LoadEdge<Tail>(e.bias + v * kF, last) : Load(e.bias + v * kF)) : VF{};
    MGE_UNROLL
    for (int r = 0; r < Rows; ++r) sum[r][v] = start;
  }
  if (e.row_bias) {
    MGE_UNROLL
    for (int r = 0; r < Rows; ++r) {
      MGE_UNROLL
      for (int v = 0; v < kN; ++v) sum[r][v] += e.row_bias[r * e.row_bias_stride];
    }
  }
  if (e.add) {
    MGE_UNROLL
    for (int r = 0; r < Rows; ++r) {
      MGE_UNROLL
      for (int v = 0; v < kN; ++v) {
        const float* p = e.add + r * e.ld_add + v * kF;
        sum[r][v] += Tail && v == kN - 1 ? LoadEdge<Tail>(p, last) : Load(p);
      }
    }
  }
  for (int64_t k = 0; k < kc; ++k) {
    VF w[kN];
    MGE_UNROLL
    for (int v = 0; v < kN; ++v) {
      const float* p = b + (v / Vectors) * panel_stride + (v % Vectors) * kF;
      w[v] = Tail && v == kN - 1 ? LoadEdge<Tail>(p, last) : Load(p);
      __builtin_prefetch(p + kAhead * kColumns);  // B comes from memory, and the hardware prefetcher stops at page ends
    }
    b += ldb;
    MGE_UNROLL
    for (int r = 0; r < Rows; ++r) {
      VF x = Splat(a[r * kStride]);
      MGE_UNROLL
      for (int v = 0; v < kN; ++v) sum[r][v] = Fma(x, w[v], sum[r][v]);
    }
    ++a;
  }
  if (e.clip) {
    VF lo = Splat(e.lo), hi = Splat(e.hi);
    MGE_UNROLL
    for (int r = 0; r < Rows; ++r) {
      MGE_UNROLL
      for (int v = 0; v < kN; ++v) sum[r][v] = Clip(sum[r][v], lo, hi);
    }
  }
  MGE_UNROLL
  for (int r = 0; r < Rows; ++r) {
    MGE_UNROLL
    for (int v = 0; v < kN; ++v) {
      float* p = c + r * ldc + v * kF;
      if (Tail && v == kN - 1)
        StoreN(p, sum[r][v], last);
      else
        Store(p, sum[r][v]);
    }
  }
}

using TileFn = void (*)(const float*, const float*, int64_t, int64_t, int64_t, float*, int64_t, const Edges&, int);

// Indexed by rows - 1, vectors - 1, and whether the last vector is partial.
struct Tiles {
  TileFn fn[kRows][2][2];
};

template <int Rows>
constexpr void Fill(Tiles& t) {
  t.fn[Rows - 1][0][0] = Tile<Rows, 1, 1, false>;
  t.fn[Rows - 1][0][1] = Tile<Rows, 1, 1, true>;
  t.fn[Rows - 1][1][0] = Tile<Rows, 2, 1, false>;
  t.fn[Rows - 1][1][1] = Tile<Rows, 2, 1, true>;
  if constexpr (Rows > 1) Fill<Rows - 1>(t);
}

constexpr Tiles MakeTiles() {
  Tiles t = {};
  Fill<kRows>(t);
  return t;
}
constexpr Tiles kTiles = MakeTiles();

// With few rows, a tile has too few independent sums to hide latency, so these tiles compute several panels at once.
constexpr int kWidePanels[3] = {4, 2, 2};
constexpr TileFn kWideTiles[3] = {Tile<1, 2, 4, false>, Tile<2, 2, 2, false>, Tile<3, 2, 2, false>};

// ---------------------------------------------------------------- copies of A

// Copies n floats. May write up to a whole vector beyond the end: rows have 16 spare floats, and later elements overwrite
// them.
MGE_INLINE void CopyFloats(float* out, const float* in, int64_t n) {
  int64_t i = 0;
  for (; i + kF <= n; i += kF) Store(out + i, Load(in + i));
#if defined(__AVX512F__)
  if (i < n) Store(out + i, LoadN(in + i, static_cast<int>(n - i)));
#else
  if (kF > 4 && i + 4 <= n) {  // the channels of a small group
    __builtin_memcpy(out + i, in + i, 4 * sizeof(float));
    i += 4;
  }
  for (; i < n; ++i) out[i] = in[i];
#endif
}
MGE_INLINE void ZeroFloats(float* out, int64_t n) {
  int64_t i = 0;
  for (; i < n; i += kF) Store(out + i, VF{});
}

template <typename T>
void CopyRows(const GemmA& a, int64_t m0, int64_t m1, int64_t k0, int64_t k1, float* out) {
  const T* base = static_cast<const T*>(a.data);
  for (int64_t i = m0; i < m1; ++i, out += kStride) {
    const T* row = base + i * a.row_stride + k0 * a.k_stride;
    if (a.k_stride == 1) {
      if constexpr (sizeof(T) == 4) {
        CopyFloats(out, row, k1 - k0);
      } else {
        int64_t k = 0;
        for (; k + kF <= k1 - k0; k += kF) Store(out + k, Load(row + k));
        for (; k < k1 - k0; ++k) out[k] = Widen(row[k]);
      }
    } else if (i == m0) {  // transposed: copies by columns, because the source is contiguous in that direction
      for (int64_t k = 0; k < k1 - k0; ++k) {
        const T* column = row + k * a.k_stride;
        for (int64_t r = 0; r < m1 - m0; ++r) out[r * kStride + k] = Widen(column[r * a.row_stride]);
      }
    }
    if (a.k_stride != 1) break;
  }
}

// A tap of a window; of its row if whole rows are copied.
struct WindowTap {
  int64_t z, y, x;

  MGE_INLINE_MEMBER void Next(const ConvWindows& g, bool whole) {
    if (!whole && ++x < g.kw) return;
    x = 0;
    if (++y < g.kh) return;
    y = 0;
    ++z;
  }
};

void CopyWindows(const GemmA& a, int64_t m0, int64_t m1, int64_t k0, int64_t k1, float* out) {
  const ConvWindows& g = *a.windows;
  const float* image = static_cast<const float*>(a.data);
  // If all channels are read and taps are neighbours, a whole row of the window is contiguous.
  bool whole = g.dw == 1 && g.pixel == g.channels;
  int64_t taps = whole ? g.kw : 1, run = taps * g.channels;
  int64_t x = m0 % g.ow, y = m0 / g.ow % g.oh, z = m0 / (g.ow * g.oh) % g.od, n = m0 / (g.ow * g.oh * g.od);
  int64_t plane = g.h * g.w * g.pixel;
  int64_t first = k0 / run, runs = (k1 - k0) / run;
  bool entire = first * run == k0 && runs * run == k1 - k0 && whole && g.kd == 1;
  const int64_t first_row = whole ? first : first / g.kw;
  const WindowTap begins = {first_row / g.kh, first_row % g.kh, whole ? 0 : first % g.kw};
  for (int64_t i = m0; i < m1; ++i, out += kStride) {
    const float* base = image + n * g.d * plane;
    int64_t t = first, k = k0;
    float* o = out;
    // The common case: inside the image, and the block begins and ends with a row of the window.
    int64_t left = x * g.sw - g.pw, top = y * g.sh - g.ph + first * g.dh, front = z * g.sd - g.pd;
    if (entire && front >= 0 && front < g.d && left >= 0 && left + g.kw <= g.w && top >= 0 &&
        top + (runs - 1) * g.dh < g.h) {
      const float* in = base + front * plane + (top * g.w + left) * g.pixel;
      for (int64_t r = 0; r < runs; ++r, in += g.dh * g.w * g.pixel, o += run) CopyFloats(o, in, run);
      k = k1;
    }
    WindowTap tap = begins;
    for (; k < k1; ++t, tap.Next(g, whole)) {
      int64_t begin = k - t * run, end = (k1 - t * run < run ? k1 - t * run : run);
      int64_t iz = front + tap.z * g.dd, iy = y * g.sh - g.ph + tap.y * g.dh, ix = x * g.sw - g.pw + tap.x * g.dw;
      int64_t low = ix < 0 ? -ix : 0, high = g.w - ix < taps ? g.w - ix : taps;  // range of taps inside the image
      if (iz < 0 || iz >= g.d || iy < 0 || iy >= g.h || low >= high) {
        ZeroFloats(o, end - begin);
      } else {
        low *= g.channels;
        high *= g.channels;
        int64_t from = begin > low ? begin : low, to = end < high ? end : high;
        if (from >= to) {
          ZeroFloats(o, end - begin);
        } else {
          if (from > begin) ZeroFloats(o, from - begin);
          CopyFloats(o + (from - begin), base + iz * plane + (iy * g.w + ix) * g.pixel + from, to - from);
          if (to < end) ZeroFloats(o + (to - begin), end - to);
        }
      }
      o += end - begin;
      k += end - begin;
    }
    if (++x == g.ow) {
      x = 0;
      if (++y == g.oh) {
        y = 0;
        if (++z == g.od) {
          z = 0;
          ++n;
        }
      }
    }
  }
}

void CopyA(const GemmA& a, int64_t m0, int64_t m1, int64_t k0, int64_t k1, float* out) {
  if (a.windows) return CopyWindows(a, m0, m1, k0, k1, out);
  if (a.type == MGE_DTYPE_F16)
    CopyRows<F16>(a, m0, m1, k0, k1, out);
  else if (a.type == MGE_DTYPE_BF16)
    CopyRows<BF16>(a, m0, m1, k0, k1, out);
  else
    CopyRows<float>(a, m0, m1, k0, k1, out);
  if (a.scale != 1.0f) {
    for (int64_t i = 0; i < m1 - m0; ++i) {
      for (int64_t k = 0; k < k1 - k0; ++k) out[i * kStride + k] *= a.scale;
    }
  }
}

// ---------------------------------------------------------------- a block of the product

Edges EdgesAt(const GemmTask& t, int64_t row, int64_t column, bool first, bool final) {
  Edges e = {};
  if (first) {
    e.bias = t.bias ? t.bias + column : nullptr;
    e.row_bias = t.row_bias ? t.row_bias + row * t.row_bias_stride : nullptr;
    e.row_bias_stride = t.row_bias_stride;
    e.add = t.add ? t.add + row * t.ld_add + column : nullptr;
    e.ld_add = t.ld_add;
  } else {
    e.add = t.c + row * t.ldc + column;
    e.ld_add = t.ldc;
  }
  e.clip = final && t.activation == Activation::kClip;
  e.lo = t.lo;
  e.hi = t.hi;
  return e;
}

void Rows(const GemmTask& t, int64_t m0, int64_t m1, int64_t p0, int64_t p1, float* copy) {
  int64_t rows = m1 - m0, tiles = (rows + kRows - 1) / kRows, step = GemmKBlock(t.k);
  int64_t padded = (t.n + kColumns - 1) / kColumns * kColumns;
  int64_t k0 = 0;
  do {  // at least once, also if k is 0
    int64_t k1 = k0 + step < t.k ? k0 + step : t.k, kc = k1 - k0;
    bool first = k0 == 0, final = k1 == t.k;
    CopyA(t.a, m0, m1, k0, k1, copy);
    const float* b = t.b + k0 * (t.ldb ? t.ldb : padded);
    int64_t ldb = t.ldb ? t.ldb : kColumns, panel_stride = t.ldb ? kColumns : kc * kColumns;
    for (int64_t p = p0; p < p1;) {
      int64_t column = p * kColumns, left = t.n - column;
      const float* panel = b + p * panel_stride;
      if (rows <= 3 && p + kWidePanels[rows - 1] <= p1 && left >= kWidePanels[rows - 1] * kColumns) {
        Edges e = EdgesAt(t, m0, column, first, final);
        kWideTiles[rows - 1](copy, panel, ldb, panel_stride, kc, t.c + m0 * t.ldc + column, t.ldc, e, 0);
        p += kWidePanels[rows - 1];
        continue;
      }
      int vectors = left > kF ? 2 : 1;
      int last = static_cast<int>(left < kColumns ? left - (vectors - 1) * kF : kF);
      for (int64_t i = 0; i < tiles; ++i) {
        int64_t r0 = rows * i / tiles, r1 = rows * (i + 1) / tiles;
        Edges e = EdgesAt(t, m0 + r0, column, first, final);
        kTiles.fn[r1 - r0 - 1][vectors - 1][last != kF](copy + r0 * kStride, panel, ldb, panel_stride, kc,
                                                        t.c + (m0 + r0) * t.ldc + column, t.ldc, e, last);
      }
      ++p;
    }
    k0 = k1;
  } while (k0 < t.k);
  int64_t c0 = p0 * kColumns, c1 = p1 * kColumns < t.n ? p1 * kColumns : t.n;
  ActivateBlock(t.activation, t.c + m0 * t.ldc + c0, t.ldc, rows, c1 - c0, t.lo);
}

void Run(const GemmTask& t, int64_t m0, int64_t m1, int64_t p0, int64_t p1) {
  alignas(64) float copy[kGemmMaxRows * kStride];
  int64_t blocks = (m1 - m0 + kGemmMaxRows - 1) / kGemmMaxRows;
  for (int64_t i = 0; i < blocks; ++i) {
    Rows(t, m0 + (m1 - m0) * i / blocks, m0 + (m1 - m0) * (i + 1) / blocks, p0, p1, copy);
  }
}

template <typename T>
void PackPanel(const T* source, int64_t rs, int64_t cs, int64_t kc, int64_t n, float scale, float* out) {
  if (n < kColumns) memset(out, 0, static_cast<size_t>(kc * kColumns) * sizeof(float));
  if (cs == 1) {
    for (int64_t k = 0; k < kc; ++k) {
      for (int64_t j = 0; j < n; ++j) out[k * kColumns + j] = Widen(source[k * rs + j]) * scale;
    }
    return;
  }
  for (int64_t k0 = 0; k0 < kc; k0 += 16) {  // one cache line of every column at a time
    int64_t k1 = k0 + 16 < kc ? k0 + 16 : kc;
    for (int64_t j = 0; j < n; ++j) {
      for (int64_t k = k0; k < k1; ++k) out[k * kColumns + j] = Widen(source[k * rs + j * cs]) * scale;
    }
  }
}

template <typename T>
void PackAs(const void* source, int64_t rs, int64_t cs, int64_t k, int64_t n, float scale, float* packed, int64_t p0,
            int64_t p1) {
  const T* s = static_cast<const T*>(source);
  int64_t step = GemmKBlock(k), padded = (n + kColumns - 1) / kColumns * kColumns;
  for (int64_t k0 = 0; k0 < k; k0 += step) {
    int64_t kc = k0 + step < k ? step : k - k0;
    for (int64_t p = p0; p < p1; ++p) {
      int64_t left = n - p * kColumns;
      PackPanel(s + k0 * rs + p * kColumns * cs, rs, cs, kc, left < kColumns ? left : kColumns, scale,
                packed + k0 * padded + p * kc * kColumns);
    }
  }
}

void Pack(const void* source, mge_dtype type, int64_t rs, int64_t cs, int64_t k, int64_t n, float scale, float* packed,
          int64_t p0, int64_t p1) {
  if (type == MGE_DTYPE_F16) return PackAs<F16>(source, rs, cs, k, n, scale, packed, p0, p1);
  if (type == MGE_DTYPE_BF16) return PackAs<BF16>(source, rs, cs, k, n, scale, packed, p0, p1);
  PackAs<float>(source, rs, cs, k, n, scale, packed, p0, p1);
}

template <typename T>
void WidenFrom(const T* source, int64_t n, float scale, float* out) {
  for (int64_t i = 0; i < n; ++i) out[i] = Widen(source[i]) * scale;
}

void Widen(const void* source, mge_dtype type, int64_t n, float scale, float* out) {
  if (type == MGE_DTYPE_F16)
    WidenFrom(static_cast<const F16*>(source), n, scale, out);
  else if (type == MGE_DTYPE_BF16)
    WidenFrom(static_cast<const BF16*>(source), n, scale, out);
  else
    WidenFrom(static_cast<const float*>(source), n, scale, out);
}

template <typename T>
void NarrowTo(const float* source, int64_t lds, T* out, int64_t ldo, int64_t m0, int64_t m1, int64_t n0, int64_t n1) {
  for (int64_t i = m0; i < m1; ++i) {
    const float* s = source + i * lds;
    T* o = out + i * ldo;
    int64_t j = n0;
    for (; j + kF <= n1; j += kF) Store(o + j, Load(s + j));
    if (j < n1) StoreN(o + j, LoadN(s + j, static_cast<int>(n1 - j)), static_cast<int>(n1 - j));
  }
}

void Narrow(const float* source, int64_t lds, void* out, mge_dtype type, int64_t ldo, int64_t m0, int64_t m1, int64_t n0,
            int64_t n1) {
  if (type == MGE_DTYPE_F16)
    NarrowTo(source, lds, static_cast<F16*>(out), ldo, m0, m1, n0, n1);
  else
    NarrowTo(source, lds, static_cast<BF16*>(out), ldo, m0, m1, n0, n1);
}

}  // namespace

extern const GemmTable kGemm = {kRows, kColumns, Run, Pack, Widen, Narrow};

}  // namespace mge::cpu::MGE_CPU_ISA
