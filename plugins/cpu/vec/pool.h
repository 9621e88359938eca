// SPDX-License-Identifier: Apache-2.0
// Pooling over windows with up to three spatial axes.
#pragma once

#include "types.h"
#include "vec/dispatch.h"

namespace mge::cpu {

// kL1 and kL2: norms, the sum of magnitudes and the root of the sum of squares.
enum class PoolOp : uint8_t { kMax, kAverage, kAverageWithPads, kL1, kL2 };

struct PoolAxis {
  int64_t in = 1, out = 1, kernel = 1, stride = 1, dilation = 1, pad_begin = 0, pad_end = 0;
};

// Axes are depth, height, width; missing axes have size 1.
struct PoolSpec {
  PoolAxis axis[3];
  int64_t channels = 1;  // channels last only; otherwise planes are units
};

// Computes units [begin, end): rows of the output, numbered over (plane or image, depth, height).
using PoolFn = void (*)(const PoolSpec& s, const void* x, void* y, int64_t begin, int64_t end);

// Computes the same units of a maximum of float32 with the index of each maximum in the plain tensor. The first one of equal
// elements is taken. A plane has less than 2^31 elements.
using IndexedPoolFn = void (*)(const PoolSpec& s, const float* x, float* y, int64_t* indices, int64_t begin, int64_t end);

struct PoolTable {
  PoolFn (*find)(PoolOp op, mge_dtype type, bool channels_last);  // null for an unsupported type
  IndexedPoolFn indexed, indexed_channels_last;
};

MGE_CPU_DISPATCH(PoolTable, Pool)

}  // namespace mge::cpu
