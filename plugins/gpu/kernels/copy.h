// SPDX-License-Identifier: Apache-2.0
// Arguments of kernels that move elements of a given size. Strides are in elements and may be negative.
#pragma once

#include <stdint.h>

#include "plugins/gpu/kernels/divisor.h"

namespace mge::gpu {

inline constexpr int kMaxCopyDims = 16;

// y[at y_strides] = x[at x_strides] for every index of dims, outermost first; n is their product.
struct CopyArgs {
  const void* x;
  void* y;
  int64_t n;
  int32_t rank;
  int32_t reserved;
  Divisor dims[kMaxCopyDims];
  int64_t x_strides[kMaxCopyDims], y_strides[kMaxCopyDims];
};

// y[i] = the low bits of `bits`, as many as an element has.
struct FillArgs {
  void* y;
  int64_t n;
  uint64_t bits;
};

// y[b][c][r] = x[b][r][c], dense, by tiles of 32 x 32.
struct TransposeArgs {
  const void* x;
  void* y;
  int64_t batch = 0, rows = 0, columns = 0;
  Divisor down = (rows + 31) / 32, across = (columns + 31) / 32;  // tiles along rows and columns
};

// Operators whose source position in each dimension depends only on the output position in that dimension: pads.
struct PlacesArgs {
  const void* x;
  void* y;
  int64_t n;
  int32_t rank;
  int32_t mode;  // 0 edge, 1 reflect, 2 wrap
  Divisor dims[8];
  int64_t in[8], strides[8], before[8];
  Divisor period[8];  // of the places: reflect 2 (in - 1), wrap in
  int64_t turns[8];   // a multiple of the period that is at least `before`
};

}  // namespace mge::gpu
