// SPDX-License-Identifier: Apache-2.0
// Arguments of matrix products. Strides are in elements; 0 repeats an operand.
#pragma once

#include <stdint.h>

#include "plugins/gpu/kernels/activation.h"

namespace mge::gpu {

// For every batch index: y = f(alpha * a b + beta * c + bias + residual), where a is m x k, b is k x n, y is dense m x n. c,
// bias (one per column, or a single one) and residual (shaped like y) may be null. `before` receives the arguments of f, unless
// it is null.
struct MatMulArgs {
  const void* a;
  const void* b;
  const void* c;
  const void* bias;
  const void* residual;
  void* y;
  void* before;
  int64_t m, n, k, batch;
  int64_t a_row, a_k, b_k, b_column;
  int64_t c_row, c_column, bias_column;
  int32_t batch_rank, reserved;
  int64_t batch_dims[6], a_batch[6], b_batch[6], residual_batch[6], residual_row, residual_column;
  float alpha, beta;
  Activation activation;
  int32_t splits;  // matmul_part: number of parts of k
};

inline constexpr int kMaxSiblings = 4;

// Products of one matrix with several matrices of equal size: y[i] = a b[i] + bias[i] for i < count. `product` holds the
// sizes, strides and the activation of each; its pointers are not used.
struct SiblingsArgs {
  const void* a;
  const void* b[kMaxSiblings];
  const void* bias[kMaxSiblings];
  void* y[kMaxSiblings];
  int64_t count;
  MatMulArgs product;
};

// The last step of a product split along k: y = f(sum of `splits` parts + ...). Uses the same struct: `a` contains the
// parts, [split][batch][m][n], in the accumulator's type.

}  // namespace mge::gpu
