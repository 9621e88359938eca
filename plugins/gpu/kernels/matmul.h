// SPDX-License-Identifier: Apache-2.0
// Arguments of the matrix products. Strides in elements; 0 repeats.
#pragma once

#include <stdint.h>

#include "plugins/gpu/kernels/activation.h"

namespace mge::gpu {

// For every batch index: y = f(alpha * a b + beta * c + bias + residual), where a is m x k, b k x n, y m x n dense. c,
// bias (one per column, or one in all) and residual (as y) may be null.
struct MatMulArgs {
  const void* a;
  const void* b;
  const void* c;
  const void* bias;
  const void* residual;
  void* y;
  int64_t m, n, k, batch;
  int64_t a_row, a_k, b_k, b_column;
  int64_t c_row, c_column, bias_column;
  int32_t batch_rank, reserved;
  int64_t batch_dims[6], a_batch[6], b_batch[6], residual_batch[6], residual_row, residual_column;
  float alpha, beta;
  Activation activation;
  int32_t splits;     // matmul_part: parts of k
};

// y = f(sum of `splits` parts of so many elements, + ...): the end of a product that was cut along k. The same struct:
// `a` is the parts, [split][batch][m][n] of the accumulator's type.

}  // namespace mge::gpu
