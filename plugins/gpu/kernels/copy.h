// SPDX-License-Identifier: Apache-2.0
// Arguments of kernels that move elements of a given size. Strides are in elements and may be negative.
#pragma once

#include <stdint.h>

namespace mge::gpu {

inline constexpr int kMaxCopyDims = 16;

// y[at y_strides] = x[at x_strides] for every index of dims, outermost first; n is their product.
struct CopyArgs {
  const void* x;
  void* y;
  int64_t n;
  int32_t rank;
  int32_t reserved;
  int64_t dims[kMaxCopyDims], x_strides[kMaxCopyDims], y_strides[kMaxCopyDims];
};

// y[i] = the low bits of `bits`, as many as an element has.
struct FillArgs {
  void* y;
  int64_t n;
  uint64_t bits;
};

// y[b][c][r] = x[b][r][c], dense.
struct TransposeArgs {
  const void* x;
  void* y;
  int64_t batch, rows, columns;
};

// Operators whose source position in each dimension depends only on the output position in that dimension: pads.
struct PlacesArgs {
  const void* x;
  void* y;
  int64_t n;
  int32_t rank;
  int32_t mode;  // 0 edge, 1 reflect, 2 wrap
  int64_t dims[8], in[8], strides[8], before[8];
};

}  // namespace mge::gpu
