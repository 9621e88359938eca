// SPDX-License-Identifier: Apache-2.0
// Reads MatMulInteger and QLinearMatMul as one product.
#pragma once

#include "mge/plugin.hpp"
#include "plugins/gpu/kernels/integer_matmul.h"

namespace mge::gpu {

// A product of 8-bit integers, with the numbers of its operands in the problem; -1: absent.
struct IntegerProduct {
  IntegerMatMulArgs args = {};  // without pointers
  int a = -1, b = -1, a_zero = -1, b_zero = -1, a_scale = -1, b_scale = -1, y_scale = -1, y_zero = -1;
  int64_t b_matrices = 1;  // in b

  bool quantizes() const { return y_scale >= 0; }
  double operations() const { return 2.0 * static_cast<double>(args.batch * args.m * args.n) * static_cast<double>(args.k); }
};

// Refuses what no kernel computes.
Result FindIntegerProduct(const Problem& p, IntegerProduct* out);

}  // namespace mge::gpu
