// SPDX-License-Identifier: Apache-2.0
// Arguments of kernels with index operands. `wide`: int64 indices, otherwise int32. Negative indices count from the end.
// Indices out of range are faults.
#pragma once

#include <stdint.h>

#include "plugins/gpu/fault.h"
#include "plugins/gpu/kernels/divisor.h"

namespace mge::gpu {

// Output piece u is the `piece` elements of x at index tuple u. Gather: x is (outer, bound, piece), and there are m indices.
// GatherND: see `tuple`.
struct GatherArgs {
  const void* x;
  const void* indices;
  void* y;
  Fault* fault;
  int64_t n;                    // elements of y
  Divisor piece, m;             // m: Gather
  int64_t bound;                // Gather
  Divisor per_batch;            // GatherND: tuples per batch
  int64_t batch_stride;         // GatherND: elements of x per batch
  int64_t dims[8], strides[8];  // GatherND: the indexed dimensions of x
  int32_t tuple;                // GatherND: indices per tuple; Gather: -1
  int32_t wide;
};

// y[i] = x[i with coordinate `axis` replaced by the index]; dims are those of the indices, strides those of x.
struct GatherElementsArgs {
  const void* x;
  const void* indices;
  void* y;
  Fault* fault;
  int64_t n, bound;
  Divisor dims[8];
  int64_t strides[8];
  int32_t rank, axis, wide, reserved;
};

// Updates of y, which already contains x. ScatterElements: one thread does all updates of one line along the axis, in order.
// ScatterND: one thread does one element of the pieces for all tuples, in order. So with equal indices the last update wins,
// and sums always have the same order.
struct ScatterArgs {
  const void* indices;
  const void* updates;
  void* y;
  Fault* fault;
  int64_t lines;  // number of threads needed
  int64_t along;  // updates per line, or number of tuples
  int64_t bound;  // ScatterElements
  int64_t dims[8],
      strides[8];  // ScatterElements: of the indices, of y; ScatterND: bounds and strides of the tuple's indices
  int32_t rank, axis, wide, reduction;  // reduction: ScatterReduction
};
// ScatterND of many tuples, which run side by side: kernels find the place of each tuple, then link tuples with one place in their
// order, and then a thread does one element of the pieces of all linked tuples. Linking compares all pairs of tuples.
struct ScatterTuplesArgs {
  const void* indices;
  const void* updates;
  void* y;
  Fault* fault;
  int64_t* places;  // by tuple: the offset of its piece in y; -1: out of range
  int32_t* next;    // by tuple: the next one with this place; -1: none
  int32_t* first;   // by tuple: whether it is the first one with its place
  int64_t tuples;
  Divisor piece;  // elements
  int64_t dims[8], strides[8];
  int32_t rank, wide, reduction, reserved;
};
enum ScatterReduction : int32_t { kScatterNone = 0, kScatterAdd = 1, kScatterMul = 2, kScatterMax = 3, kScatterMin = 4 };

// y (outer, depth, inner) is values[1] where the index (outer, inner) is the depth, else values[0].
struct OneHotArgs {
  const void* indices;
  const void* values;
  void* y;
  int64_t n;
  Divisor depth, inner;
  int32_t wide, reserved;
};

// y = x on and above (upper) or on and below the diagonal number *k (0 if k is null), else 0.
struct TriluArgs {
  const void* x;
  const int64_t* k;
  void* y;
  int64_t n;
  Divisor rows, columns;
  int32_t upper, reserved;
};

}  // namespace mge::gpu
