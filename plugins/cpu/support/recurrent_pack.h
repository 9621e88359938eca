// SPDX-License-Identifier: Apache-2.0
// Packs weights and biases of recurrent operators in the order in which the steps read them.
#pragma once

#include "support/recurrent_args.h"

namespace mge::cpu {

// Quantized matrices [k, gates * hidden] of all directions.
struct Quantized {
  const void* data;
  bool is_signed;
  const float* scale;
  const void* zero;
  bool scale_columns, zero_columns;

  int Number(const void* from, int64_t i) const {
    return is_signed ? static_cast<const int8_t*>(from)[i] : static_cast<const uint8_t*>(from)[i];
  }
};

// Packs the matrices [gates * hidden, k] of all directions. `rows` is scratch memory of width * k floats.
void PackMatrices(const RecurrentArgs& a, int64_t k, const float* source, float* rows, float* packed);

// Packs quantized matrices: as bytes if a.int8, otherwise as the numbers that the bytes represent.
void PackQuantized(const RecurrentArgs& a, int64_t k, const Quantized& q, float* rows, void* packed);

// Adds the biases of input and state, [directions, 2, gates * hidden]. For a GRU with linear_before_reset, the state's bias
// of the hidden gate is stored separately. If `source` is null, all are zero.
void SumBiases(const RecurrentArgs& a, /*nullable*/ const float* source, float* out);

}  // namespace mge::cpu
