// SPDX-License-Identifier: Apache-2.0
// Arguments of attention. Strides are in elements; 0 repeats an operand.
#pragma once

#include <stdint.h>

namespace mge::gpu {

inline constexpr int kMaxHeadSize = 128;  // largest head_size and value_size

// The effect of a mask on the score at its place: the mask ...
enum MaskKind : int32_t {
  kMaskAdds,        // is added to it; the elements have the type of q
  kMaskAddsFloats,  // is added to it; the elements are float
  kMaskKeeps,       // bool: keeps it where true, replaces it by `fill` elsewhere
  kMaskReplaces,    // bool: replaces it by `fill` where true
};

// For every batch index: y = softmax(scale * q k^T + mask) v, where q is queries x head_size, k is keys x head_size, v is
// keys x value_size, mask is queries x keys or null, and y is queries x value_size. Causal: query i uses the keys up to
// i + keys - queries only.
struct AttentionArgs {
  const void* q;
  const void* k;
  const void* v;
  const void* mask;
  void* y;
  int64_t queries, keys, batch;
  int32_t head_size, value_size;
  int64_t q_row, q_column, k_row, k_column, v_row, v_column, mask_row, mask_column, y_row, y_column;
  int32_t batch_rank, causal;
  int64_t batch_dims[6], q_batch[6], k_batch[6], v_batch[6], mask_batch[6], y_batch[6];
  float scale, fill;
  MaskKind mask_kind;
  int32_t reserved;
};

}  // namespace mge::gpu
