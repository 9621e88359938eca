// SPDX-License-Identifier: Apache-2.0
#include "core/ops/families/fused_attention.h"
#include "fmt/format.h"

namespace mge::op_multi_head_attention {
namespace {

enum Input { kQ, kK, kV, kBias, kMask, kAttentionBias, kPastKey, kPastValue, kPastLength, kCacheIndirection };

absl::Status Infer(InferContext& ctx) { return InferAttention(ctx, kQ); }

// Divides a packed operand [batch, tokens, heads, parts, size] into rows of [batch, tokens, heads * size]. The batch and the
// number of tokens may be unknown.
std::vector<ValueId> Unpacked(FunctionBody& f, int input) {
  const Shape dims = f.dims(input);
  const Ints ones(static_cast<size_t>(dims[3]), 1);
  std::vector<ValueId> parts = f.Add("Split", {f.input(input), f.Integers(ones)}, ones.size(), IntAttribute("axis", 3));
  for (ValueId& part : parts) part = f.ReshapePartly(part, {0, 0, dims[2] * dims[4]});
  return parts;
}

// Returns whether the ranks are known, and the sizes that follow from the weights: those of rows and heads.
bool KnowsRows(const FunctionBody& f) {
  for (int i = 0; i < f.input_count(); ++i) {
    if (f.has_input(i) && !f.has_rank(i)) return false;
  }
  for (const int i : {kQ, kK, kV, kBias}) {
    if (!f.has_input(i)) continue;
    const Shape dims = f.dims(i);
    const size_t first = dims.size() == 3 || dims.size() == 5 ? 2 : dims.size() == 4 ? 3 : 0;
    if (std::find(dims.begin() + static_cast<ptrdiff_t>(first), dims.end(), kUnknownDim) != dims.end()) return false;
  }
  return true;
}

absl::StatusOr<bool> Body(FunctionBody& f) {
  if (!KnowsRows(f)) return false;
  if (f.has_input(kPastLength) || f.has_input(kCacheIndirection)) {
    return f.Unsupported("the input past_sequence_length or cache_indirection");
  }
  if (f.output(3) != kNone) return f.Unsupported("the output qk");
  const int64_t heads = f.attrs().Int("num_heads"), rank = f.rank(kQ);
  if (heads <= 0) return f.Invalid("num_heads must be positive");
  const bool packed = rank == 5, packed_keys = f.has_input(kK) && f.rank(kK) == 5;
  if ((packed && f.dims(kQ)[3] != 3) || (packed_keys && f.dims(kK)[3] != 2) || (!packed && rank != 3)) {
    return f.Invalid("query must have 3 dimensions or be packed");
  }
  if (!packed && (!f.has_input(kK) || (!packed_keys && !f.has_input(kV)))) return f.Invalid("key and value are required");
  const Shape q = f.dims(kQ);
  const int64_t batch = q[0], queries = q[1], hidden = packed ? q[2] * q[4] : q[2];
  const bool by_head = !packed && f.rank(kK) == 4;  // keys and values are [batch, heads, tokens, size]
  if (!packed && !packed_keys && (f.rank(kK) != f.rank(kV) || (!by_head && f.rank(kK) != 3))) {
    return f.Invalid("key and value must have 3 or 4 dimensions");
  }
  const int64_t new_keys = packed ? queries : f.dims(kK)[by_head ? 2 : 1];
  const int64_t past = f.has_input(kPastKey) && f.rank(kPastKey) == 4 ? f.dims(kPastKey)[2] : 0;
  const int64_t keys = past == kUnknownDim || new_keys == kUnknownDim ? kUnknownDim : past + new_keys;
  FusedAttention attention(f, batch, queries, keys, f.dtype(kQ));
  if (!attention.KnowsMask(kMask)) return false;
  FusedAttention::Operands o = {.q = f.input(kQ), .k = f.input(kK), .v = f.input(kV)};
  if (packed) {
    const std::vector<ValueId> parts = Unpacked(f, kQ);
    o = {.q = parts[0], .k = parts[1], .v = parts[2]};
  } else if (packed_keys) {
    const std::vector<ValueId> parts = Unpacked(f, kK);
    o.k = parts[0];
    o.v = parts[1];
  }
  if (f.has_input(kBias)) {
    const int64_t values = f.rank(kBias) == 1 ? f.dims(kBias)[0] - 2 * hidden : -1;
    if (values < 0) return f.Invalid("bias must have the elements of queries, keys and values");
    const std::vector<ValueId> bias = f.Split(f.input(kBias), {hidden, hidden, values});
    o.q = f.Plus(o.q, bias[0]);
    if (!by_head) {
      o.k = f.Plus(o.k, bias[1]);
      o.v = f.Plus(o.v, bias[2]);
    }
  }
  MGE_RETURN_IF_ERROR(attention.AddMask(kMask));
  attention.AddBias(kAttentionBias);
  o.past_key = f.input(kPastKey);
  o.past_value = f.input(kPastValue);
  o.present_key = f.output(1);
  o.present_value = f.output(2);
  Attributes attrs = AttentionAttributes(f, heads, heads);
  attrs.Set("is_causal", f.attrs().Int("unidirectional"));
  if (!by_head) {
    o.y = f.output(0);
    attention.Add(o, std::move(attrs));
    return true;
  }
  if (hidden % heads != 0) return f.Invalid("num_heads does not divide the size of a query");
  o.q = f.Transpose(f.ReshapePartly(o.q, {0, 0, heads, hidden / heads}), {0, 2, 1, 3});
  attrs.Remove("q_num_heads");
  attrs.Remove("kv_num_heads");
  const ValueId y = f.Transpose(attention.Add(o, std::move(attrs)), {0, 2, 1, 3});
  f.ReshapePartlyTo(f.output(0), y, {0, 0, heads * f.dims(kV)[3]});
  return true;
}

}  // namespace

MGE_OP(multi_head_attention) = {
    .name = "MultiHeadAttention",
    .domain = "com.microsoft",
    .doc = "Attention of projected queries, keys and values, which may be packed into one tensor.",
    .inputs = {{"query", kFloating},
               {"key", kFloating, Arity::kOptional},
               {"value", kFloating, Arity::kOptional},
               {"bias", kFloating, Arity::kOptional},
               {"key_padding_mask", {DType::kI32}, Arity::kOptional},
               {"attention_bias", kFloating, Arity::kOptional},
               {"past_key", kFloating, Arity::kOptional},
               {"past_value", kFloating, Arity::kOptional},
               {"past_sequence_length", {DType::kI32}, Arity::kOptional},
               {"cache_indirection", {DType::kI32}, Arity::kOptional}},
    .outputs = {{"output"},
                {"present_key", kAnyType, Arity::kOptional},
                {"present_value", kAnyType, Arity::kOptional},
                {"qk", kAnyType, Arity::kOptional}},
    .attrs = {{"mask_filter_value", -10000.0f, "added where the mask is 0"},
              {"num_heads", AttrType::kInt, Presence::kRequired, "the number of heads"},
              {"scale", AttrType::kFloat, Presence::kOptional,
               "the factor of the products; absent: 1 / sqrt(size of a head)"},
              {"unidirectional", 0, "not 0: a query sees only earlier keys"}},
    .infer = Infer,
    .eval = EvalByBody,
    .body = Body,
    .examples = {"(T[2,3,8], T[2,5,8], T[2,5,8], T[24], int32[2,5]<1,1,1,0,0,1,1,1,1,1>) {num_heads=2}",
                 "(T[1,3,2,3,4]) {num_heads=2, unidirectional=1}", "(T[1,3,8], T[1,5,2,2,4]) {num_heads=2}",
                 "(T[1,3,8], T[1,2,5,4], T[1,2,5,4], T[24]) {num_heads=2}",
                 "(T[1,1,8], T[1,1,8], T[1,1,8], _, _, T[1,2,1,6], T[1,2,5,4], T[1,2,5,4]) {num_heads=2} -> 3"},
};

}  // namespace mge::op_multi_head_attention
