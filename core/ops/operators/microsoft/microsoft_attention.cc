// SPDX-License-Identifier: Apache-2.0
#include "core/ops/families/fused_attention.h"
#include "fmt/format.h"

namespace mge::op_microsoft_attention {
namespace {

enum Input { kX, kWeights, kBias, kMask, kPast, kAttentionBias, kPastLength };

absl::Status Infer(InferContext& ctx) { return InferAttention(ctx, kX); }

absl::StatusOr<bool> Body(FunctionBody& f) {
  // The batch and the number of tokens may be unknown.
  for (int i = 0; i < f.input_count(); ++i) {
    if (f.has_input(i) && !f.has_rank(i)) return false;
  }
  if (!f.type(kWeights).IsStatic()) return false;
  const Shape x = f.dims(kX), weights = f.dims(kWeights);
  if (x.size() != 3 || weights.size() != 2) return f.Invalid("input must have 3 dimensions and weights 2");
  if (f.attrs().Int("do_rotary") != 0) return f.Unsupported("the attribute do_rotary");
  if (f.attrs().Int("past_present_share_buffer") != 0 || f.has_input(kPastLength)) {
    return f.Unsupported("the attribute past_present_share_buffer");
  }
  const int64_t heads = f.attrs().Int("num_heads"), all = weights[1];
  const Ints parts = f.attrs().IntList("qkv_hidden_sizes", {all / 3, all / 3, all / 3});
  const bool fits = heads > 0 && parts.size() == 3 && parts[0] == parts[1] && parts[0] > 0 && parts[0] <= all / 2 &&
                    parts[2] > 0 && parts[2] == all - 2 * parts[0] && parts[0] % heads == 0 && parts[2] % heads == 0;
  if (!fits) return f.Invalid(fmt::format("num_heads and qkv_hidden_sizes do not fit weights {}", ShapeText(weights)));
  const int64_t past = f.has_input(kPast) && f.rank(kPast) == 5 ? f.dims(kPast)[3] : 0;

  const int64_t keys = past == kUnknownDim || x[1] == kUnknownDim ? kUnknownDim : past + x[1];
  FusedAttention attention(f, x[0], x[1], keys, f.dtype(kX));
  if (!attention.KnowsMask(kMask)) return false;
  MGE_RETURN_IF_ERROR(attention.AddMask(kMask));
  attention.AddBias(kAttentionBias);
  const ValueId projected = f.Plus(f.Add("MatMul", {f.input(kX), f.input(kWeights)}), f.input(kBias));
  const std::vector<ValueId> qkv = f.Split(projected, parts);
  FusedAttention::Operands operands = {.q = qkv[0], .k = qkv[1], .v = qkv[2], .y = f.output(0)};
  if (f.has_input(kPast)) {
    const auto half = [&](int64_t i) {
      return f.Add("Gather", {f.input(kPast), f.Number(DType::kI64, static_cast<double>(i))}, IntAttribute("axis", 0));
    };
    operands.past_key = half(0);
    operands.past_value = half(1);
  }
  if (f.output(1) != kNone) {
    operands.present_key = f.NewValue();
    operands.present_value = f.NewValue();
  }
  Attributes attrs = AttentionAttributes(f, heads, heads);
  attrs.Set("is_causal", f.attrs().Int("unidirectional"));
  attention.Add(operands, std::move(attrs));
  if (f.output(1) != kNone) {
    const auto part = [&](ValueId v) { return f.Add("Unsqueeze", {v, f.Integers({0})}); };
    f.Result(1, "Concat", {part(operands.present_key), part(operands.present_value)}, IntAttribute("axis", 0));
  }
  return true;
}

}  // namespace

MGE_OP(microsoft_attention) = {
    .name = "Attention",
    .domain = "com.microsoft",
    .doc = "Attention with the projections of queries, keys and values as one product.",
    .inputs = {{"input", kFloating},
               {"weights", kFloating},
               {"bias", kFloating, Arity::kOptional},
               {"mask_index", {DType::kI32}, Arity::kOptional},
               {"past", kFloating, Arity::kOptional},
               {"attention_bias", kFloating, Arity::kOptional},
               {"past_sequence_length", {DType::kI32}, Arity::kOptional}},
    .outputs = {{"output"}, {"present", kAnyType, Arity::kOptional}},
    .attrs = {{"do_rotary", 0, "not 0: rotates queries and keys"},
              {"mask_filter_value", -10000.0f, "added where the mask is 0"},
              {"num_heads", AttrType::kInt, Presence::kRequired, "the number of heads"},
              {"past_present_share_buffer", 0, "must be 0"},
              {"qkv_hidden_sizes", AttrType::kInts, Presence::kOptional, "columns of Q, K and V; absent: a third each"},
              {"rotary_embedding_dim", 0, "rotated elements of a head; 0: all"},
              {"scale", AttrType::kFloat, Presence::kOptional,
               "the factor of the products; absent: 1 / sqrt(size of a head)"},
              {"unidirectional", 0, "not 0: a query sees only earlier keys"}},
    .infer = Infer,
    .eval = EvalByBody,
    .body = Body,
    .examples = {"(T[2,3,6], T[6,24], T[24], int32[2,3]<1,1,0,1,1,1>) {num_heads=2}",
                 "(T[2,3,6], T[6,20], T[20], int32[2]<2,3>) {num_heads=2, qkv_hidden_sizes=[8,8,4]}",
                 "(T[1,3,6], T[6,24], T[24], _, T[2,1,2,5,4]) {num_heads=2, unidirectional=1} -> 2"},
};

}  // namespace mge::op_microsoft_attention
