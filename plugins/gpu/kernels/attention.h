// SPDX-License-Identifier: Apache-2.0
// Arguments of attention. Strides are in elements; 0 repeats an operand.
#pragma once

#include <stdint.h>

namespace mge::gpu {

inline constexpr int kMaxHeadSize = 256;       // largest head_size and value_size
inline constexpr int kAttentionColumns = 128;  // of values, for which a block uses matrix units

// The effect of a mask on the score at its place: the mask ...
enum MaskKind : int32_t {
  kMaskAdds,        // is added to it; the elements have the type of q
  kMaskAddsFloats,  // is added to it; the elements are float
  kMaskKeeps,       // bool: keeps it where true, replaces it by `fill` elsewhere
  kMaskReplaces,    // bool: replaces it by `fill` where true
};

// A second mask, which acts on the keys behind key i + keys - queries of query i, in the same way on all of them.
enum CausalKind : int32_t { kNotCausal, kCausalAdds, kCausalReplaces };
struct CausalMask {
  CausalKind kind;
  int32_t last;  // not 0: it acts behind the mask in memory
  float fill;    // is added to a score, or replaces it
  float enough;  // a query with a larger score gives these keys no weight, so they can be left out
};

// For every batch index: y = softmax(scale * q k^T + mask) v, where q is queries x head_size, k is keys x head_size, v is
// keys x value_size, mask is queries x keys or null, and y is queries x value_size.
struct AttentionArgs {
  const void* q;
  const void* k;
  const void* v;
  const void* mask;
  void* y;
  float* work;  // attention by parts: the parts of each query
  int64_t queries, keys, batch;
  int32_t head_size, value_size;
  int64_t q_row, q_column, k_row, k_column, v_row, v_column, mask_row, mask_column, y_row, y_column;
  int32_t batch_rank;
  int64_t batch_dims[6], q_batch[6], k_batch[6], v_batch[6], mask_batch[6], y_batch[6];
  float scale, fill;
  MaskKind mask_kind;
  CausalMask causal;
  int64_t parts;  // attention by parts: their number
};

// Attention of few queries by parts of kPartKeys keys, whose number depends on the keys only, so that a query has the same bits
// in any batch.
inline constexpr int64_t kPartKeys = 256;
inline constexpr int kPartThreads = 128;

}  // namespace mge::gpu
