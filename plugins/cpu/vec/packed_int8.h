// SPDX-License-Identifier: Apache-2.0
// Products of rows that are rounded to 8 bits with weights of 4 or 8 bits, both with a scale for each block of k. The sums of a
// block are integers.
//
// A panel has one column in each 32-bit lane of a register. A register holds the weights of consecutive k, the first one in the
// lowest bits, so the panel is a transposed matrix of 32-bit words.
#pragma once

#include "types.h"
#include "vec/dispatch.h"

namespace mge::cpu {

// The sizes of the weights, k of which belong to a column.
struct Int8Blocks {
  int64_t k, n;
  int64_t blocks, block;
  int bits;
};

// Numbers of a block of a row.
struct Int8RowBlock {
  float scale;
  float sum;       // of the numbers, with the scale
  int32_t offset;  // the sum of the products with the middle of the range of the weights, negative
};

struct PackedInt8Task {
  Int8Blocks size;
  const uint32_t* panels;
  const float* scales;  // [panel, blocks, lanes]
  const float* zeros;   // the same, less the middle of the range; null: all are the middle
  const int8_t* rows;   // [row, blocks * block], see `round`
  const Int8RowBlock* row_blocks;
  int64_t rows_count;
  const float* bias;  // per column, or null
  float* c;           // row-major, n columns
};

// Null without vectors of 256 bits.
struct PackedInt8Table {
  int lanes;
  // Transposes the columns of panel p of a matrix [n, words].
  void (*pack)(const uint32_t* source, int64_t words, int64_t n, int64_t p, uint32_t* panels);
  // Rounds a row of k floats. With weights of 4 bits, a product meets the even k of a word first, then the odd ones; the row
  // has that order.
  void (*round)(const float* a, const Int8Blocks& size, int8_t* row, Int8RowBlock* blocks);
  // Compute all rows of panels p0..p1, with the same result. The second one needs dot products of bytes (AllowsVnni).
  void (*run)(const PackedInt8Task& task, int64_t p0, int64_t p1);
  void (*run_vnni)(const PackedInt8Task& task, int64_t p0, int64_t p1);
};

MGE_CPU_DISPATCH(PackedInt8Table, PackedInt8)

}  // namespace mge::cpu
