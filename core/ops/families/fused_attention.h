// SPDX-License-Identifier: Apache-2.0
// Parts of the attention operators of com.microsoft, which become an Attention of ONNX.
#pragma once

#include <string>
#include <vector>

#include "core/ops/function_body.h"

namespace mge {

// Adds the Attention that a fused operator stands for. Sizes that are unknown are kUnknownDim.
class FusedAttention {
 public:
  FusedAttention(FunctionBody& f, int64_t batch, int64_t queries, int64_t keys, DType type)
      : f_(f), batch_(batch), queries_(queries), keys_(keys), type_(type) {}

  // Returns whether enough sizes are known for AddMask() with this input.
  bool KnowsMask(int input) const;
  // Adds a mask input of the operator, if it is present: numbers of keys [batch], ends and starts [2 * batch], or flags
  // [batch, keys], [batch, queries, keys] or [batch, 1, most queries, most keys]. Keys that it excludes get the attribute
  // mask_filter_value.
  absl::Status AddMask(int input);
  // Adds an input whose elements are added to the scores, if it is present.
  void AddBias(int input);
  void AddToScores(ValueId bias) { mask_ = f_.Plus(bias, mask_); }
  // Appends a column to the mask, for a key that Add() gets behind the others: [1 or batch, heads, queries, 1].
  void AppendToMask(ValueId column, int64_t mask_batch, int64_t heads);

  // Adds the Attention of operands with the heads in their rows, or of [batch, heads, tokens, size]. Returns its result.
  // `past` are the keys and values of earlier tokens, `present` receives all; they may be kNone.
  struct Operands {
    ValueId q = kNone, k = kNone, v = kNone, past_key = kNone, past_value = kNone;
    ValueId present_key = kNone, present_value = kNone;
    ValueId valid_keys = kNone;
    ValueId scores = kNone;  // gets the scores at the stage that attribute qk_matmul_output_mode names
    ValueId y = kNone;       // the value to compute; kNone: a new one
  };
  ValueId Add(const Operands& operands, Attributes attrs);

 private:
  ValueId Filtered(ValueId keep);  // zeros where `keep` is true

  FunctionBody& f_;
  int64_t batch_, queries_, keys_;
  DType type_;
  ValueId mask_ = kNone;  // is added to the scores
};

// Returns the attributes of an Attention with these heads, and with the scale of the operator, where 0 is the default.
Attributes AttentionAttributes(const FunctionBody& f, int64_t q_heads, int64_t kv_heads);

// Infers the element types of the outputs from that of input `like`. Infers the shapes if those of all inputs are known.
absl::Status InferAttention(InferContext& ctx, int like);

}  // namespace mge
