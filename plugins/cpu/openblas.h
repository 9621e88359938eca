// SPDX-License-Identifier: Apache-2.0
// OpenBLAS behind one function. The library is opened at its first use, and held to the calling thread.
#pragma once

#include <cstdint>

#include "mge/plugin.hpp"

namespace mge::cpu::openblas {

// True if the library lies where the loader would find it. Opens nothing.
bool IsInstalled();
// Opens the library if that has not been tried yet; says why it cannot be used.
Result Load();

// C = alpha A B + beta C for row-major A (m by k), B (k by n), C (m by n) with the given distances between rows; a
// transposed operand lies as its transpose. float, or double if `wide`. [any] once Load() has answered well.
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
