// SPDX-License-Identifier: Apache-2.0
// OpenBLAS behind one function. The library is opened at its first use, and runs on the calling thread only.
#pragma once

#include <cstdint>

#include "mge/plugin.hpp"

namespace mge::cpu::openblas {

// Returns whether the library is in a directory of the loader. Opens nothing.
bool IsInstalled();
// Opens the library on the first call. Fails with the reason if it cannot be used.
Result Load();

// C = alpha A B + beta C for row-major A (m by k), B (k by n), C (m by n) with the given row strides. A transposed operand
// is stored as its transpose. float, or double if `wide`. [any] after a successful Load().
struct Product {
  bool wide;
  bool transposed_a, transposed_b;
  int64_t m, n, k;
  double alpha, beta;
  const void* a;
  int64_t lda;
  const void* b;
  int64_t ldb;
  void* c;
  int64_t ldc;
};
void Multiply(const Product& p);

}  // namespace mge::cpu::openblas
