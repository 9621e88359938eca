// SPDX-License-Identifier: Apache-2.0
// Kernels for rows: softmax and normalisations. A row is `n` contiguous elements; rows are independent.
#pragma once

#include "types.h"
#include "vec/dispatch.h"

namespace mge::cpu {

// Softmax, or its logarithm, along an axis.
struct SoftmaxRows {
  const void* x;
  void* y;        // may be x
  int64_t n;      // along the axis
  int64_t inner;  // elements between neighbours along the axis; 1: rows are contiguous
  bool log;
};

// y = (x - mean) / sqrt(variance + epsilon) * scale + bias
struct NormRows {
  const void* x;
  void* y;
  const void* scale;  // n elements of the type of x; null: all 1
  const void* bias;   // null: all 0
  void* mean;         // one per row, of stat_type; null: not written
  void* inv_std;
  int64_t n;
  double epsilon;
  bool centred;  // false: root mean square only
};

// Instance and group normalisation of one group. Plain: `channels` channels of `n` contiguous elements. Channels last: n
// rows, row_stride elements apart, of which `channels` columns belong to the group.
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
  // Softmax units are rows, or blocks of columns if `inner` is not 1.
  void (*softmax[4])(const SoftmaxRows& s, int64_t begin, int64_t end);  // by FloatIndex
  void (*norm[4])(const NormRows& s, int64_t begin, int64_t end);
  void (*group[4])(const NormGroup& g);
};

// Returns the index of float, double and the 16-bit floats in the tables.
MGE_CPU_INLINE int FloatIndex(mge_dtype t) {
  return t == MGE_DTYPE_F32 ? 0 : t == MGE_DTYPE_F64 ? 1 : t == MGE_DTYPE_F16 ? 2 : t == MGE_DTYPE_BF16 ? 3 : -1;
}

MGE_CPU_DISPATCH(RowsTable, Rows)

}  // namespace mge::cpu
