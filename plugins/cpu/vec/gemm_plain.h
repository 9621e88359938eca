// SPDX-License-Identifier: Apache-2.0
// Products of float64 and integer matrices without packing.
#pragma once

#include "types.h"
#include "vec/dispatch.h"

namespace mge::cpu {

// C = alpha A B + beta init, with strides in elements. init may be null. Integers wrap around and ignore alpha and beta.
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
  // Returns the function that computes rows m0..m1, or null if the type is not supported.
  void (*(*find)(mge_dtype type))(const PlainGemm& g, int64_t m0, int64_t m1);
};

MGE_CPU_DISPATCH(GemmPlainTable, GemmPlain)

}  // namespace mge::cpu
