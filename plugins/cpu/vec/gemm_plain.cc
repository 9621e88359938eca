// SPDX-License-Identifier: Apache-2.0
#include "vec/gemm_plain.h"

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

// Signed integers are computed as unsigned ones, which wrap around.
void (*Find(mge_dtype type))(const PlainGemm&, int64_t, int64_t) {
  switch (type) {
    case MGE_DTYPE_F64: return RowsOf<double>;
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
