// SPDX-License-Identifier: Apache-2.0
#include <limits>

#include "core/ops/families/fused_attention.h"
#include "fmt/format.h"

namespace mge::op_group_query_attention {
namespace {

enum Input {
  kQ,
  kK,
  kV,
  kPastKey,
  kPastValue,
  kLengths,
  kTotal,
  kCos,
  kSin,
  kPositions,
  kAttentionBias,
  kSink,
  kNormQ = 14,
  kNormK,
  kQueryLengths
};

// The sizes of a node. `lengths` of the batch are the last positions, that is the numbers of valid keys less 1.
struct Sizes {
  int64_t batch = 0, queries = 0, heads = 0, kv_heads = 0, head = 0;
  bool shared = false;  // the past has all keys: this layer adds none to the cache of another one
  int64_t past = 0;     // rows of the past keys, some of which may be free
  int64_t total = 0;    // most valid keys of a batch
  // Returns whether the place of the new keys is known: no sample has earlier keys, or there is one sample.
  bool IsFixed() const { return total == queries || batch == 1; }
  int64_t rows() const { return std::max(past, total); }
};

Shape DimsOf(const FunctionBody& f, int input) { return f.dims(input); }
const Shape& DimsOf(const InferContext& ctx, int input) { return ctx.input(input).dims; }

// `f` is a FunctionBody or an InferContext whose inputs have static types and constant lengths.
template <typename Context>
absl::StatusOr<Sizes> ReadSizes(const Context& f) {
  Sizes s = {.heads = f.attrs().Int("num_heads"), .kv_heads = f.attrs().Int("kv_num_heads")};
  const Shape q = DimsOf(f, kQ);
  const bool packed = !f.has_input(kK);
  if (q.size() != 3 || s.heads <= 0 || s.kv_heads <= 0 || s.heads % s.kv_heads != 0 || packed == f.has_input(kV)) {
    return f.Invalid("query, key, num_heads and kv_num_heads do not fit together");
  }
  const bool few = s.heads <= q[2] && (!packed || s.kv_heads <= (q[2] - s.heads) / 2);  // their sum does not overflow
  const int64_t all_heads = few && packed ? s.heads + 2 * s.kv_heads : s.heads;
  if (!few || q[2] % all_heads != 0) return f.Invalid("num_heads does not divide the size of a query");
  s.batch = q[0];
  s.queries = q[1];
  s.head = q[2] / all_heads;
  if (f.has_input(kPastKey)) {
    const Shape past = DimsOf(f, kPastKey);
    if (past.size() != 4 || !f.has_input(kPastValue)) return f.Invalid("past_key must have 4 dimensions");
    s.past = past[2];
  }
  if (!packed) {
    const Shape k = DimsOf(f, kK), v = DimsOf(f, kV);
    s.shared = s.past > 0 && k.size() == 3 && k[1] == 0;
    if (k.size() != 3 || v.size() != 3 || k[1] != v[1] || (k[1] != s.queries && !s.shared)) {
      return f.Invalid("key and value must be as long as query, or have length 0 if past_key has all keys");
    }
  }
  const std::vector<int64_t> total = f.constant(kTotal)->ToInts();
  if (total.size() != 1 || total[0] < s.queries || total[0] - s.past > (s.shared ? 0 : s.queries)) {
    return f.Invalid("total_sequence_length must lie between the length of query and the number of past and new keys");
  }
  s.total = total[0];
  if (!f.has_input(kLengths)) return f.Invalid("seqlens_k is required");
  return s;
}

// Sets the types of the outputs without the body, for a node that the body accepts. A language model has one in each of its layers, and
// a plan for each length.
absl::Status Infer(InferContext& ctx) {
  const DType type = ctx.input(kQ).dtype;
  const auto is_static = [&](int i) { return !ctx.has_input(i) || ctx.input(i).IsStatic(); };
  bool usual = ctx.has_input(kLengths) && ctx.has_input(kTotal) && ctx.constant(kTotal) && !ctx.has_input(kQueryLengths) &&
               !ctx.has_output(3) && ctx.attrs().Int("sliding_window_cache") == 0 &&
               ctx.attrs().Text("k_quant_type") == "NONE" && ctx.attrs().Text("v_quant_type") == "NONE" &&
               (ctx.attrs().Int("do_rotary") == 0 || (ctx.has_input(kCos) && ctx.has_input(kSin)));
  for (int i : {kQ, kK, kV, kPastKey, kPastValue}) usual = usual && is_static(i);
  if (!usual) return InferAttention(ctx, kQ);
  MGE_ASSIGN_OR_RETURN(const Sizes s, ReadSizes(ctx));
  const Shape rows = {s.batch, s.shared ? 0 : s.queries, s.kv_heads * s.head}, past = {s.batch, s.kv_heads, s.past, s.head};
  for (const auto& [i, shape] : {std::pair{kK, rows}, {kV, rows}, {kPastKey, past}, {kPastValue, past}}) {
    if (ctx.has_input(i) && (ctx.input(i).dims != shape || ctx.input(i).dtype != type)) return InferAttention(ctx, kQ);
  }
  ctx.SetOutput(0, {.dtype = type, .has_rank = true, .dims = {s.batch, s.queries, s.heads * s.head}});
  const TensorType cache = {.dtype = type, .has_rank = true, .dims = {s.batch, s.kv_heads, s.rows(), s.head}};
  for (int i : {1, 2}) ctx.SetOutput(i, cache);
  return absl::OkStatus();
}

// Adds the nodes of one GroupQueryAttention.
class Builder {
 public:
  Builder(FunctionBody& f, const Sizes& sizes) : f_(f), s_(sizes) {}

  absl::Status Run() {
    FusedAttention::Operands o = {.q = f_.input(kQ), .k = f_.input(kK), .v = f_.input(kV), .y = f_.output(0)};
    if (o.k == kNone) {
      const std::vector<ValueId> parts = f_.Split(o.q, {s_.heads * s_.head, s_.kv_heads * s_.head, s_.kv_heads * s_.head});
      o = {.q = parts[0], .k = parts[1], .v = parts[2], .y = o.y};
    }
    if (f_.has_input(kNormQ)) o.q = Normalized(o.q, s_.heads, kNormQ, "q_norm_epsilon");
    if (f_.has_input(kNormK) && !s_.shared) o.k = Normalized(o.k, s_.kv_heads, kNormK, "k_norm_epsilon");
    if (f_.attrs().Int("do_rotary") != 0) {
      if (!f_.has_input(kCos) || !f_.has_input(kSin) || f_.rank(kCos) != 2) return f_.Invalid("cos_cache is required");
      const ValueId positions = f_.has_input(kPositions) ? f_.input(kPositions) : Positions();
      o.q = Rotated(o.q, s_.heads, positions);
      if (!s_.shared) o.k = Rotated(o.k, s_.kv_heads, positions);
    }
    FusedAttention attention(f_, s_.batch, s_.queries, s_.total, f_.dtype(kQ));
    attention.AddBias(kAttentionBias);
    Attributes attrs = AttentionAttributes(f_, s_.heads, s_.kv_heads);
    attrs.Set("is_causal", f_.attrs().Int("causal"));
    if (const float cap = f_.attrs().Float("softcap"); cap > 0) attrs.Set("softcap", cap);
    if (const int64_t window = f_.attrs().Int("local_window_size"); window > 0) attrs.Set("left_window_size", window - 1);

    const bool sinks = f_.has_input(kSink) || f_.attrs().Int("smooth_softmax") > 0;
    if (sinks && !s_.IsFixed())
      return f_.Unsupported("head_sink or smooth_softmax for samples with caches of different length");

    if (s_.IsFixed() && s_.rows() == s_.total && !sinks && !s_.shared) {
      o.past_key = Earlier(kPastKey);
      o.past_value = Earlier(kPastValue);
      o.present_key = f_.output(1);
      o.present_value = f_.output(2);
      attention.Add(o, std::move(attrs));
      return absl::OkStatus();
    }
    // The new keys, if there are any, are written into the free rows of the cache. The operands then have heads of their own.
    const ValueId keys = Cache(kPastKey, o.k, 1), values = Cache(kPastValue, o.v, 2);
    o.q = f_.Transpose(f_.Reshape(o.q, {s_.batch, s_.queries, s_.heads, s_.head}), {0, 2, 1, 3});
    o.k = Valid(keys);
    o.v = Valid(values);
    o.y = kNone;
    o.valid_keys = s_.IsFixed() ? f_.Integers(std::vector<int64_t>(static_cast<size_t>(s_.batch), s_.total)) : Counts();
    attrs.Remove("q_num_heads");
    attrs.Remove("kv_num_heads");
    if (sinks) {
      AddSink(&attention, &o, attrs);
      for (std::string_view name : {"is_causal", "left_window_size"}) attrs.Remove(name);
    }
    const ValueId y = f_.Transpose(attention.Add(o, std::move(attrs)), {0, 2, 1, 3});
    f_.ReshapeTo(f_.output(0), y, {s_.batch, s_.queries, s_.heads * s_.head});
    return absl::OkStatus();
  }

 private:
  // Returns the numbers of valid keys [batch].
  ValueId Counts() {
    if (counts_ == kNone) {
      const ValueId last = f_.Cast(f_.input(kLengths), f_.dtype(kLengths), DType::kI64);
      counts_ = f_.Add("Add", {f_.Reshape(last, {s_.batch}), f_.Integers({1})});
    }
    return counts_;
  }
  // Returns the position of the first new key of each sample [batch].
  ValueId Starts() {
    if (s_.IsFixed()) return f_.Integers(std::vector<int64_t>(static_cast<size_t>(s_.batch), s_.total - s_.queries));
    return f_.Add("Sub", {Counts(), f_.Integers({s_.queries})});
  }
  // Returns the positions of the new tokens [batch, queries].
  ValueId Positions() {
    std::vector<int64_t> steps(static_cast<size_t>(s_.queries));
    for (size_t i = 0; i < steps.size(); ++i) steps[i] = static_cast<int64_t>(i);
    return f_.Add("Add", {f_.Reshape(Starts(), {s_.batch, 1}), f_.Integers(steps)});
  }
  // Normalizes each head.
  ValueId Normalized(ValueId x, int64_t heads, int weights, std::string_view epsilon) {
    const float value = f_.attrs().Float(epsilon, f_.attrs().Float("qk_norm_epsilon"));
    const ValueId by_head = f_.Reshape(x, {s_.batch, s_.queries, heads, s_.head});
    const ValueId y = f_.Add("RMSNormalization", {by_head, f_.input(weights)}, OneAttribute("epsilon", value));
    return f_.Reshape(y, {s_.batch, s_.queries, heads * s_.head});
  }
  ValueId Rotated(ValueId x, int64_t heads, ValueId positions) {
    Attributes attrs = IntAttribute("num_heads", heads);
    attrs.Set("interleaved", f_.attrs().Int("rotary_interleaved"));
    attrs.Set("rotary_embedding_dim", 2 * f_.dims(kCos)[1]);
    return f_.Add("RotaryEmbedding", {x, f_.input(kCos), f_.input(kSin), positions}, std::move(attrs));
  }
  // Returns the earlier keys or values, or kNone if there are none.
  ValueId Earlier(int input) {
    const int64_t earlier = s_.total - s_.queries;
    if (earlier == 0) return kNone;
    if (earlier == s_.past) return f_.input(input);
    return f_.Add("Slice", {f_.input(input), f_.Integers({0}), f_.Integers({earlier}), f_.Integers({2})});
  }
  // Returns all rows of the cache with the new ones, and sets the output.
  ValueId Cache(int input, ValueId x, int output) {
    if (s_.shared) {
      if (f_.output(output) != kNone) f_.Result(output, "Identity", {f_.input(input)});
      return f_.input(input);
    }
    x = f_.Transpose(f_.Reshape(x, {s_.batch, s_.queries, s_.kv_heads, s_.head}), {0, 2, 1, 3});
    ValueId cache = f_.input(input);
    if (s_.past < s_.total) {
      const Shape free = {s_.batch, s_.kv_heads, s_.total - s_.past, s_.head};
      const ValueId zeros = f_.Add("Expand", {f_.Number(f_.dtype(kQ), 0), f_.Integers(free)});
      cache = s_.past == 0 ? zeros : f_.Add("Concat", {cache, zeros}, IntAttribute("axis", 2));
    }
    const ValueId all = f_.output(output) != kNone ? f_.output(output) : f_.NewValue();
    f_.AddTo({all}, "TensorScatter", {cache, x, Starts()}, IntAttribute("axis", 2));
    return all;
  }
  // Adds a key of zeros behind the others, which adds exp(sink) to the sum of the softmax. The mask then has all limits.
  void AddSink(FusedAttention* attention, FusedAttention::Operands* o, const Attributes& attrs) {
    const DType type = f_.dtype(kQ);
    const int64_t earlier = s_.total - s_.queries, window = attrs.Int("left_window_size", s_.total);
    std::vector<float> limits;
    for (int64_t i = 0; i < s_.queries; ++i) {
      for (int64_t j = 0; j < s_.total; ++j) {
        const int64_t position = i + earlier;
        const bool sees = (attrs.Int("is_causal") == 0 || j <= position) && j >= position - window;
        limits.push_back(sees ? 0 : -std::numeric_limits<float>::infinity());
      }
    }
    const ValueId floats = f_.Constant(Tensor::Of<float>({1, 1, s_.queries, s_.total}, std::span<const float>(limits)));
    attention->AddToScores(f_.Cast(floats, DType::kF32, type));
    const ValueId sink = f_.has_input(kSink) ? f_.Reshape(f_.input(kSink), {1, s_.heads, 1, 1}) : f_.Number(type, 0);
    attention->AppendToMask(sink, f_.has_input(kAttentionBias) ? f_.dims(kAttentionBias)[0] : 1, s_.heads);
    const ValueId zeros = f_.Add("Expand", {f_.Number(type, 0), f_.Integers({s_.batch, s_.kv_heads, int64_t{1}, s_.head})});
    for (ValueId* v : {&o->k, &o->v}) *v = f_.Add("Concat", {*v, zeros}, IntAttribute("axis", 2));
    o->valid_keys = kNone;
  }
  // Returns the rows of the cache that may be valid.
  ValueId Valid(ValueId cache) {
    if (s_.rows() == s_.total) return cache;
    return f_.Add("Slice", {cache, f_.Integers({0}), f_.Integers({s_.total}), f_.Integers({2})});
  }

  FunctionBody& f_;
  const Sizes s_;
  ValueId counts_ = kNone;
};

absl::StatusOr<bool> Body(FunctionBody& f) {
  if (!f.has_input(kTotal)) return f.Invalid("total_sequence_length is required");
  if (!f.IsStatic() || !f.constant(kTotal)) return false;
  if (f.has_input(kQueryLengths)) return f.Unsupported("the input query_seqlens");
  if (f.attrs().Int("sliding_window_cache") != 0) return f.Unsupported("the attribute sliding_window_cache");
  if (f.output(3) != kNone) return f.Unsupported("the output output_qk");
  for (std::string_view name : {"k_quant_type", "v_quant_type"}) {
    if (f.attrs().Text(name) != "NONE") return f.Unsupported(fmt::format("the attribute {}", name));
  }
  MGE_ASSIGN_OR_RETURN(const Sizes sizes, ReadSizes(f));
  MGE_RETURN_IF_ERROR(Builder(f, sizes).Run());
  return true;
}

}  // namespace

MGE_OP(group_query_attention) = {
    .name = "GroupQueryAttention",
    .domain = "com.microsoft",
    .doc = "Causal attention whose heads share keys, with a cache of keys and values. It may rotate queries and keys first.",
    .inputs = {{"query", kFloating},
               {"key", kFloating, Arity::kOptional},
               {"value", kFloating, Arity::kOptional},
               {"past_key", kFloating, Arity::kOptional},
               {"past_value", kFloating, Arity::kOptional},
               {"seqlens_k", {DType::kI32}, Arity::kOptional},
               {"total_sequence_length", {DType::kI32}, Arity::kOptional},
               {"cos_cache", kFloating, Arity::kOptional},
               {"sin_cache", kFloating, Arity::kOptional},
               {"position_ids", {DType::kI64}, Arity::kOptional},
               {"attention_bias", kFloating, Arity::kOptional},
               {"head_sink", kFloating, Arity::kOptional},
               {"k_scale", kFloating, Arity::kOptional},
               {"v_scale", kFloating, Arity::kOptional},
               {"q_norm_weight", kFloating, Arity::kOptional},
               {"k_norm_weight", kFloating, Arity::kOptional},
               {"query_seqlens", {DType::kI32}, Arity::kOptional}},
    .outputs = {{"output"},
                {"present_key", kAnyType, Arity::kOptional},
                {"present_value", kAnyType, Arity::kOptional},
                {"output_qk", kAnyType, Arity::kOptional}},
    .attrs = {{"causal", 1, "not 0: a query sees only earlier keys"},
              {"do_rotary", 0, "not 0: rotates queries and keys"},
              {"k_norm_epsilon", AttrType::kFloat, Presence::kOptional, "absent: qk_norm_epsilon"},
              {"k_quant_type", "NONE", "must be NONE"},
              {"kv_cache_bit_width", 0, "must be 0"},
              {"kv_num_heads", AttrType::kInt, Presence::kRequired, "heads of keys and values"},
              {"local_window_size", -1, "keys that a query sees; -1: all"},
              {"num_heads", AttrType::kInt, Presence::kRequired, "the number of heads"},
              {"q_norm_epsilon", AttrType::kFloat, Presence::kOptional, "absent: qk_norm_epsilon"},
              {"qk_norm_epsilon", 1e-6f, "added to the mean square"},
              {"qk_output", 0, "must be 0"},
              {"rotary_interleaved", 0, "not 0: pairs are neighbours, else halves"},
              {"scale", AttrType::kFloat, Presence::kOptional,
               "the factor of the products; absent: 1 / sqrt(size of a head)"},
              {"sliding_window_cache", 0, "must be 0"},
              {"smooth_softmax", 0, "not 0: adds 1 to the sum of a softmax"},
              {"softcap", 0.0f, "limits the products to this size; 0: no limit"},
              {"v_quant_type", "NONE", "must be NONE"}},
    .infer = Infer,
    .eval = EvalByBody,
    .body = Body,
    .examples = {"(T[2,3,8], T[2,3,4], T[2,3,4], _, _, int32[2]<2,1>, int32[1]<3>) {num_heads=4, kv_num_heads=2} -> 3",
                 "(T[1,1,8], T[1,1,4], T[1,1,4], T[1,2,5,2], T[1,2,5,2], int32[1]<5>, int32[1]<6>, T[9,1], T[9,1]) "
                 "{num_heads=4, kv_num_heads=2, do_rotary=1} -> 3",
                 "(T[2,1,8], T[2,1,4], T[2,1,4], T[2,2,7,2], T[2,2,7,2], int32[2]<5,2>, int32[1]<6>) "
                 "{num_heads=4, kv_num_heads=2, softcap=2.0} -> 3",
                 "(T[1,3,16], _, _, _, _, int32[1]<2>, int32[1]<3>) {num_heads=4, kv_num_heads=2, local_window_size=2}"},
};

}  // namespace mge::op_group_query_attention
