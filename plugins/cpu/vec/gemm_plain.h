// SPDX-License-Identifier: Apache-2.0
// Products of matrices of float64 and integers: row after row of C, as plain loops.
#pragma once

#include "types.h"
#include "vec/dispatch.h"

namespace mge::cpu {

// C = alpha A B + beta init, strides in elements; init may be null. Integers wrap around, and know no alpha and beta.
struct PlainGemm {
  const void* a;
  int64_t a_row, a_k;
  const void* b;
  int64_t b_k, b_column;
  const void* init;
  int64_t init_row, init_column;
  void* c;
  int64_t ldc;
  int64_t n, k;
  double alpha, beta;
};

struct GemmPlainTable {
  // Rows m0..m1. Null if there is none for the type.
  void (*(*find)(mge_dtype type))(const PlainGemm& g, int64_t m0, int64_t m1);
};

MGE_CPU_DISPATCH(GemmPlainTable, GemmPlain)

}  // namespace mge::cpu
