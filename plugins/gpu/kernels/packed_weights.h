// SPDX-License-Identifier: Apache-2.0
// Arguments of products with weights of 2, 4 or 8 bits (problems/n_bits_product.hpp of the SDK).
#pragma once

#include <stdint.h>

#include "plugins/gpu/kernels/divisor.h"

namespace mge::gpu {

// y (m, n) = a (m, k) times the weights, + bias (n), which may be null. `zeros` may be null: 2^(bits - 1). Kernels named
// unpack_weights write the weights to y instead, (n, k).
struct PackedWeightsArgs {
  const void* a;
  const uint8_t* b;  // aligned to 4 bytes, except for unpack_weights
  const void* scales;
  const void* zeros;
  const void* bias;
  void* y;
  int64_t m, n;
  Divisor k;
  int64_t blocks;
  Divisor block;       // numbers
  Divisor word_block;  // the same in words of 32 bits
  int64_t column_bytes, zero_bytes;
  int32_t bits, packed_zeros;  // packed_zeros: zeros are bytes of a column, else numbers
};

// The rows that a warp multiplies with a column at once.
inline constexpr int64_t kPackedRows = 4;

}  // namespace mge::gpu
