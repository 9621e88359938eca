// SPDX-License-Identifier: Apache-2.0
// Products of float rows with weights of 2, 4 or 8 bits, which are unpacked in registers. Reading the weights takes most of
// the time of a product with few rows, so they stay packed in memory. For many rows, panels of columns are unpacked for the
// product of vec/gemm.h.
//
// A register holds the weights of one column for consecutive k. Lane l of its 32-bit lanes has the k from l * (32 / bits) on,
// the first one in the lowest bits. A shift therefore brings every (32 / bits)-th weight to the low bits of all lanes, and rows
// are arranged in the same order before the product.
#pragma once

#include "types.h"
#include "vec/dispatch.h"

namespace mge::cpu {

// The form of the weights. Column n has `blocks` blocks of `block` weights, a power of two.
struct PackedWeights {
  const uint8_t* data;
  const float* scales;  // [n, blocks]
  const float* zeros;   // [n, blocks], or null for the middle of the range
  int64_t blocks, block;
  int bits;
};

struct PackedTask {
  PackedWeights weights;
  const float* rows;  // arranged
  const float* sums;  // of the arranged rows, for each lane of a register
  int64_t k, rows_count;
  const float* bias;  // per column, or null
  float* c;
  int64_t ldc;
};

struct PackedTable {
  int lanes;  // 32-bit lanes of a register
  // Arranges one row of k floats. Writes ArrangedFloats() to `row` and their sums, a (32 / bits)-th as many, to `sums`.
  void (*arrange)(const float* a, int64_t k, int bits, int64_t registers, float* row, float* sums);
  // Computes columns n0..n1 of all rows.
  void (*run)(const PackedTask& task, int64_t n0, int64_t n1);
  // Unpacks `columns` columns from n0 on, a multiple of the lanes: out[k * columns + i] is weight k of column n0 + i. Columns
  // from n1 on have other numbers.
  void (*unpack)(const PackedWeights& weights, int64_t k, int64_t n0, int64_t n1, int64_t columns, float* out);
};

// Returns the number of registers for one column.
MGE_CPU_INLINE int64_t PackedRegisters(int64_t blocks, int64_t block, int bits, int lanes) {
  const int64_t weights = 32 / bits * lanes;
  return (blocks * block + weights - 1) / weights;
}
MGE_CPU_INLINE int64_t ArrangedFloats(int64_t registers, int bits, int lanes) { return registers * lanes * (32 / bits); }

MGE_CPU_DISPATCH(PackedTable, PackedProduct)

}  // namespace mge::cpu
