// SPDX-License-Identifier: Apache-2.0
// Products of unsigned 8-bit rows with signed 8-bit matrices. Sums are exact in 32 bits and then scaled to float.
#pragma once

#include "types.h"
#include "vec/dispatch.h"

namespace mge::cpu {

// Columns per panel of packed weights. A panel contains, for every 4 steps of k, 4 bytes of each column.
inline constexpr int64_t kInt8Columns = 32;
MGE_CPU_INLINE int64_t Int8Bytes(int64_t k) { return (k + 3) / 4 * 4; }  // bytes of a row or column

// (+)= scale[column] * a_scale * sum over k of (a - a_zero) * (b - b_zero[column]), plus the bias
struct Int8Task {
  const uint8_t* a;       // rows of Int8Bytes(k) bytes, padded with zeros
  int64_t a_stride;       // in bytes
  const int32_t* a_sums;  // sum of the bytes of each row, a_sums_stride apart
  int64_t a_sums_stride;
  int32_t a_zero;
  float a_scale;
  const int8_t* b;        // packed
  const int32_t* b_sums;  // per column: sum of the bytes
  const int32_t* b_zero;  // per column
  const float* b_scale;   // per column
  int64_t k;
  const float* bias;  // per column; null: adds to c
  float* c;
  int64_t ldc;
};

struct Int8Table {
  // Computes rows m0..m1 of panels p0..p1. Null if the instruction set does not support them.
  void (*run)(const Int8Task& task, int64_t m0, int64_t m1, int64_t p0, int64_t p1);
  // Writes x as bytes with this scale and zero point, padded with zeros to Int8Bytes(n). Returns the sum of the bytes.
  int32_t (*quantize)(const float* x, int64_t n, float scale, float zero, uint8_t* out);
};

MGE_CPU_DISPATCH(Int8Table, Int8)

}  // namespace mge::cpu
