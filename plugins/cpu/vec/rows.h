// SPDX-License-Identifier: Apache-2.0
// Kernels over rows: softmax and normalisations. A row is `n` elements that lie together; rows are independent.
#pragma once

#include "types.h"
#include "vec/dispatch.h"

namespace mge::cpu {

struct SoftmaxRows {
  const void* x;
  void* y;            // may be x
  int64_t n;          // along the axis
  int64_t inner;      // elements between two neighbours along the axis; 1: a row lies together
  bool log;
};

// y = (x - mean) / sqrt(variance + epsilon) * scale + bias
struct NormRows {
  const void* x;
  void* y;
  const void* scale;  // n elements of the type of x; null: 1
  const void* bias;   // null: 0
  void* mean;         // one a row, of stat_type; null: not wanted
  void* inv_std;
  int64_t n;
  double epsilon;
  bool centred;       // false: root mean square only
};

// Instance and group normalisation of one group: `channels` channels of `n` elements that lie together (plain), or n rows
// of which `channels` columns belong to the group (channels last, row_stride elements apart).
struct NormGroup {
  const void* x;
  void* y;
  const void* scale;  // per channel
  const void* bias;
  int64_t channels;
  int64_t n;
  int64_t row_stride;  // 0: plain
  double epsilon;
};

struct RowsTable {
  // Row `row` of a matrix of rows by n, and blocks of `inner` columns: outer is the index of the block.
  void (*softmax[4])(const SoftmaxRows& s, int64_t begin, int64_t end);  // by FloatIndex
  void (*norm[4])(const NormRows& s, int64_t begin, int64_t end);
  void (*group[4])(const NormGroup& g);
};

// float, double, 16-bit floats.
MGE_CPU_INLINE int FloatIndex(mge_dtype t) {
  return t == MGE_DTYPE_F32 ? 0 : t == MGE_DTYPE_F64 ? 1 : t == MGE_DTYPE_F16 ? 2 : t == MGE_DTYPE_BF16 ? 3 : -1;
}

MGE_CPU_DISPATCH(RowsTable, Rows)

}  // namespace mge::cpu
