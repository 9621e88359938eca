// SPDX-License-Identifier: Apache-2.0
// The dimensions of an Attention, and the keys that its queries may see.
#pragma once

#include <span>

#include "core/ops/infer_checks.h"

namespace mge {

// The inputs and outputs of the operator.
struct AttentionSlots {
  enum Input : int { kQ, kK, kV, kMask, kPastKey, kPastValue, kValidKeys };
  enum Output : int { kY, kPresentKey, kPresentValue, kScores };
};
using AttentionInput = AttentionSlots::Input;
using AttentionOutput = AttentionSlots::Output;

// Queries are batch x q_heads x queries x head, keys batch x kv_heads x new_keys x head, and values batch x kv_heads x
// new_keys x value_head. In operands of rank 3, the heads lie within a row: batch x queries x (q_heads * head). Unknown sizes
// are kUnknownDim.
struct AttentionDims {
  bool in_rows = false;  // the operands have rank 3
  int64_t batch = 0, q_heads = 0, kv_heads = 0, queries = 0, new_keys = 0, past = 0, head = 0, value_head = 0;
  int64_t keys() const { return past == kUnknownDim || new_keys == kUnknownDim ? kUnknownDim : past + new_keys; }
  int64_t heads_per_key() const { return q_heads / kv_heads; }
  Shape Output() const {
    if (!in_rows) return {batch, q_heads, queries, value_head};
    return {batch, queries, value_head == kUnknownDim ? kUnknownDim : q_heads * value_head};
  }
  // Returns whether the sizes that follow from the weights are known: the numbers of heads, and the sizes of a head.
  bool KnowsHeads() const {
    return q_heads != kUnknownDim && kv_heads != kUnknownDim && head != kUnknownDim && value_head != kUnknownDim;
  }
  // Returns whether all sizes are known.
  bool IsStatic() const { return KnowsHeads() && batch != kUnknownDim && queries != kUnknownDim && keys() != kUnknownDim; }
};

// Reads the dimensions from shapes whose sizes may be unknown. `past_key` and `past_value` are null if the node has no past. Fails with
// kInvalidNode if they do not fit together.
absl::StatusOr<AttentionDims> ResolveAttention(const Attributes& attrs, const Shape& q, const Shape& k, const Shape& v,
                                               /*nullable*/ const Shape* past_key, /*nullable*/ const Shape* past_value);

// The rule of the attributes is_causal, left_window_size and right_window_size. A query i has the position p = i + offset.
struct AttentionWindow {
  bool causal = false;  // it sees keys j <= p
  int64_t left = -1;    // it sees keys j >= p - left; -1: all
  int64_t right = -1;   // it sees keys j <= p + right; -1: all
  bool limits() const { return causal || left >= 0 || right >= 0; }
  bool Sees(int64_t position, int64_t key) const {
    return (!causal || key <= position) && (left < 0 || position - key <= left) && (right < 0 || key - position <= right);
  }
};
absl::StatusOr<AttentionWindow> ReadAttentionWindow(const Attributes& attrs);

// Returns the factor of the scores.
double AttentionScale(const Attributes& attrs, int64_t head);

}  // namespace mge
