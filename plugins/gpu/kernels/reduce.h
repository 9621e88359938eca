// SPDX-License-Identifier: Apache-2.0
// Arguments of the reductions.
#pragma once

#include <stdint.h>

#include "plugins/gpu/fault.h"

namespace mge::gpu {

// Dimensions, outermost first, with strides of x in elements.
struct ReduceWalk {
  int32_t rank;
  int32_t reserved;
  int64_t dims[8], strides[8];
};

// y[i] = f of the `count` elements of x that output i names.
struct ReduceArgs {
  const void* x;
  void* y;
  int64_t outputs, count;
  ReduceWalk kept, reduced;
  int64_t splits;  // reduce_atomic: blocks for an output
};

// y (outer, inner) int64 = position along n of the largest (smallest) of x (outer, n, inner). NaN counts as such.
struct ArgReduceArgs {
  const void* x;
  void* y;
  int64_t outputs, n, inner;
  int32_t smallest, last;
};

// y = running sums of x along the dimension *axis (counted from the end if negative), int64 or (wide 0) int32.
struct RunningSumArgs {
  const void* x;
  const void* axis;
  void* y;
  Fault* fault;
  int64_t n;             // elements
  int64_t dims[8];
  int32_t rank, wide, exclusive, reverse;
};

// y = 1 at the first largest of x (outer, n, inner) along n, else 0; rows = outer * inner.
struct HardmaxArgs {
  const void* x;
  void* y;
  int64_t rows, n, inner;
};

// The k largest (smallest) of x (outer, n, inner) along n, in order; of equals the earlier first. values may be null.
struct TopKArgs {
  const void* x;
  void* values;
  int64_t* indices;
  int64_t lines, n, inner, k;
  int32_t largest, reserved;
};

}  // namespace mge::gpu
