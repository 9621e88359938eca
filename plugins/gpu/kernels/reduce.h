// SPDX-License-Identifier: Apache-2.0
// Arguments of the reductions.
#pragma once

#include <stdint.h>

#include "plugins/gpu/fault.h"
#include "plugins/gpu/kernels/divisor.h"

namespace mge::gpu {

// Dimensions, outermost first, with strides of x in elements.
struct ReduceWalk {
  int32_t rank;
  int32_t reserved;
  Divisor dims[8];
  int64_t strides[8];
};

// y[i] = f of the `count` elements of x that belong to output i.
struct ReduceArgs {
  const void* x;
  void* y;
  int64_t outputs, count;
  ReduceWalk kept, reduced;
  int64_t splits;  // reduce_atomic: blocks per output; kernels named parts and join: parts per output
};

// y (outer, inner), int64 = position along n of the maximum (minimum) of x (outer, n, inner). NaN counts as the extreme
// value.
struct ArgReduceArgs {
  const void* x;
  void* y;
  int64_t outputs, n, inner;
  int32_t smallest, last;
};

// y = running sums of x along the dimension *axis (negative: from the end), which is int64, or int32 if `wide` is 0.
struct RunningSumArgs {
  const void* x;
  const void* axis;
  void* y;
  Fault* fault;
  int64_t n;  // number of elements
  int64_t dims[8];
  int32_t rank, wide, exclusive, reverse;
};

// y = 1 at the first maximum of x (outer, n, inner) along n, else 0; rows = outer * inner.
struct HardmaxArgs {
  const void* x;
  void* y;
  int64_t rows, n, inner;
};

// The k largest (smallest) elements of x (outer, n, inner) along n, sorted; equal ones in their order. values may be null.
struct TopKArgs {
  const void* x;
  void* values;
  int64_t* indices;
  int64_t lines, n, inner, k;
  int32_t largest, reserved;
};

}  // namespace mge::gpu
