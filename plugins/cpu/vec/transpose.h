// SPDX-License-Identifier: Apache-2.0
// Transposes matrices in memory.
#pragma once

#include <stdint.h>

#include "vec/dispatch.h"

namespace mge::cpu {

// Writes to[c * to_stride + r] = from[r * from_stride + c] for r < rows, c < columns. Strides are in elements.
using TransposeFn = void (*)(const void* from, int64_t from_stride, void* to, int64_t to_stride, int64_t rows,
                             int64_t columns);

struct TransposeTable {
  TransposeFn by_bytes[4];  // elements of 1, 2, 4, 8 bytes
};

MGE_CPU_DISPATCH(TransposeTable, Transpose)

}  // namespace mge::cpu
