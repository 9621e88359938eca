// SPDX-License-Identifier: Apache-2.0
// Arguments of products of 8-bit integers.
#pragma once

#include <stdint.h>

namespace mge::gpu {

// Where the parameter (scale or zero point) of a line is: a row of a, or a column of b. Strides are in elements; 0: one for all.
struct LineParameter {
  int64_t line, batch[6];
};

// The result of a product of 8-bit integers.
enum class IntegerResult {
  kSums,       // int32: MatMulInteger
  kQuantized,  // uint8 or int8, sum * (a_scale * b_scale / y_scale) + y_zero: QLinearMatMul
  kReals       // float32, sum * b_scale + bias: MatMulInteger and the nodes behind it
};

// For every batch index: y is the result of (a - a_zero) (b - b_zero), where a is m x k, dense, b is k x n, dense, or n x k if
// `packed`, and y is dense m x n. Null zero points and a null bias are 0.
struct IntegerMatMulArgs {
  const uint8_t* a;
  const uint8_t* b;
  const uint8_t* a_zero;
  const uint8_t* b_zero;
  const void* a_scale;
  const void* b_scale;
  const void* y_scale;
  const uint8_t* y_zero;
  const float* bias;
  void* y;
  int64_t m, n, k, batch;
  int32_t a_signed, b_signed, y_signed;  // whether they are int8, or uint8
  int32_t scale_type;                    // mge_dtype of the scales
  int32_t batch_rank, packed;
  int64_t batch_dims[6], a_batch[6], b_batch[6];
  LineParameter a_zero_of, b_zero_of, a_scale_of, b_scale_of;
  int64_t bias_step;  // 1: one bias per column; 0: one for all
};

}  // namespace mge::gpu
