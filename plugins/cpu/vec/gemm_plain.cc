// SPDX-License-Identifier: Apache-2.0
#include "vec/gemm_plain.h"

#include "vec/simd.h"

namespace mge::cpu::MGE_CPU_ISA {
namespace {

// Columns whose sums fit into the first-level cache while k runs.
constexpr int64_t kBlock = 512;

template <typename T>
void RowsOf(const PlainGemm& g, int64_t m0, int64_t m1) {
  const T* a = static_cast<const T*>(g.a);
  const T* init = static_cast<const T*>(g.init);
  for (int64_t j0 = 0; j0 < g.n; j0 += kBlock) {
    int64_t width = g.n - j0 < kBlock ? g.n - j0 : kBlock;
    const T* b = static_cast<const T*>(g.b) + j0 * g.b_column;
    for (int64_t i = m0; i < m1; ++i) {
      T* c = static_cast<T*>(g.c) + i * g.ldc + j0;
      for (int64_t j = 0; j < width; ++j) {
        c[j] = init ? static_cast<T>(static_cast<T>(g.beta) * init[i * g.init_row + (j0 + j) * g.init_column]) : T(0);
      }
      for (int64_t k = 0; k < g.k; ++k) {
        T x = static_cast<T>(static_cast<T>(g.alpha) * a[i * g.a_row + k * g.a_k]);
        const T* row = b + k * g.b_k;
        if (g.b_column == 1) {
          for (int64_t j = 0; j < width; ++j) c[j] = static_cast<T>(c[j] + static_cast<T>(x * row[j]));
        } else {
          for (int64_t j = 0; j < width; ++j) c[j] = static_cast<T>(c[j] + static_cast<T>(x * row[j * g.b_column]));
        }
      }
    }
  }
}

// Rows of C whose sums stay in registers, each of two vectors.
constexpr int kTileRows = kD == 8 ? 8 : 4;
constexpr int kStrip = 2 * kD;
constexpr int64_t kStripRows = 256;  // of B that are copied side by side, where they fit into the first-level cache

// Adds rows k0..k1 of B times columns k0..k1 of A to C: Rows rows from row i, n columns from column j. `b` has the strip's rows,
// `step` elements apart. Every sum runs over k in order, so a row does not depend on its neighbours.
template <int Rows, bool Tail, bool Scales>
MGE_INLINE void Tile(const PlainGemm& g, const double* b, int64_t step, int64_t k0, int64_t k1, int64_t i, int64_t j,
                     int n) {
  const int low = n < kD ? n : kD, high = n - low;
  auto load = [&](const double* p, int v) { return Tail ? LoadN(p + v * kD, v ? high : low) : Load(p + v * kD); };
  const double* a = static_cast<const double*>(g.a) + i * g.a_row + k0 * g.a_k;
  double* c = static_cast<double*>(g.c) + i * g.ldc + j;
  VD sum[Rows][2];
  MGE_UNROLL
  for (int r = 0; r < Rows; ++r) {
    for (int v = 0; v < 2; ++v) sum[r][v] = load(c + r * g.ldc, v);
  }
  for (int64_t k = k0; k < k1; ++k, a += g.a_k, b += step) {
    const VD b0 = load(b, 0), b1 = load(b, 1);
    MGE_UNROLL
    for (int r = 0; r < Rows; ++r) {
      const VD x = Splat(Scales ? g.alpha * a[r * g.a_row] : a[r * g.a_row]);
      sum[r][0] = Fma(x, b0, sum[r][0]);
      sum[r][1] = Fma(x, b1, sum[r][1]);
    }
  }
  MGE_UNROLL
  for (int r = 0; r < Rows; ++r) {
    for (int v = 0; v < 2; ++v) {
      if (Tail)
        StoreN(c + r * g.ldc + v * kD, sum[r][v], v ? high : low);
      else
        Store(c + r * g.ldc + v * kD, sum[r][v]);
    }
  }
}

template <bool Tail, bool Scales>
MGE_INLINE void StripOf(const PlainGemm& g, const double* b, int64_t step, int64_t k0, int64_t k1, int64_t m0, int64_t m1,
                        int64_t j, int n) {
  int64_t i = m0;
  for (; i + kTileRows <= m1; i += kTileRows) Tile<kTileRows, Tail, Scales>(g, b, step, k0, k1, i, j, n);
  for (; i < m1; ++i) Tile<1, Tail, Scales>(g, b, step, k0, k1, i, j, n);
}

template <bool Tail>
void Strip(const PlainGemm& g, const double* b, int64_t step, int64_t k0, int64_t k1, int64_t m0, int64_t m1, int64_t j,
           int n) {
  if (g.alpha == 1)
    StripOf<Tail, false>(g, b, step, k0, k1, m0, m1, j, n);
  else
    StripOf<Tail, true>(g, b, step, k0, k1, m0, m1, j, n);
}

void Start(const PlainGemm& g, int64_t m0, int64_t m1) {
  const double* init = static_cast<const double*>(g.init);
  for (int64_t i = m0; i < m1; ++i) {
    double* c = static_cast<double*>(g.c) + i * g.ldc;
    for (int64_t j = 0; j < g.n; ++j) c[j] = init ? g.beta * init[i * g.init_row + j * g.init_column] : 0;
  }
}

// Copies `rows` rows of n elements to rows of kStrip elements. Reads along the dimension that is contiguous.
void CopyStrip(const double* b, int64_t row, int64_t column, int64_t rows, int n, double* out) {
  if (column == 1) {
    for (int64_t k = 0; k < rows; ++k) {
      for (int c = 0; c < n; ++c) out[k * kStrip + c] = b[k * row + c];
    }
  } else {
    for (int c = 0; c < n; ++c) {
      for (int64_t k = 0; k < rows; ++k) out[k * kStrip + c] = b[k * row + c * column];
    }
  }
}

void DoubleRows(const PlainGemm& g, int64_t m0, int64_t m1) {
  Start(g, m0, m1);
  double strip[kStripRows * kStrip];
  const bool copies = g.b_column != 1 || m1 - m0 > kTileRows;
  for (int64_t j = 0; j < g.n; j += kStrip) {
    const int n = g.n - j < kStrip ? static_cast<int>(g.n - j) : kStrip;
    for (int64_t k0 = 0; k0 < g.k; k0 += kStripRows) {
      const int64_t k1 = k0 + kStripRows < g.k ? k0 + kStripRows : g.k;
      const double* b = static_cast<const double*>(g.b) + k0 * g.b_k + j * g.b_column;
      int64_t step = g.b_k;
      if (copies) {
        CopyStrip(b, g.b_k, g.b_column, k1 - k0, n, strip);
        b = strip, step = kStrip;
      }
      if (n == kStrip)
        Strip<false>(g, b, step, k0, k1, m0, m1, j, n);
      else
        Strip<true>(g, b, step, k0, k1, m0, m1, j, n);
    }
  }
}

// Signed integers are computed as unsigned ones, which wrap around.
void (*Find(mge_dtype type))(const PlainGemm&, int64_t, int64_t) {
  switch (type) {
    case MGE_DTYPE_F64: return DoubleRows;
    case MGE_DTYPE_I32:
    case MGE_DTYPE_U32: return RowsOf<uint32_t>;
    case MGE_DTYPE_I64:
    case MGE_DTYPE_U64: return RowsOf<uint64_t>;
    default: return nullptr;
  }
}

}  // namespace

extern const GemmPlainTable kGemmPlain = {Find};

}  // namespace mge::cpu::MGE_CPU_ISA
