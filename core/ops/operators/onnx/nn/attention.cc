// SPDX-License-Identifier: Apache-2.0
#include "core/ops/families/attention.h"

#include <cmath>
#include <limits>
#include <vector>

#include "core/ops/families/broadcast.h"
#include "core/ops/families/normalization.h"
#include "core/ops/gradient.h"

namespace mge::op_attention {
namespace {

using enum AttentionInput;
using enum AttentionOutput;
// The stage of the scores that output 3 has.
enum Mode { kScaled, kCapped, kBiased, kWeights };

absl::StatusOr<Mode> ReadMode(const Attributes& attrs) {
  const int64_t mode = attrs.Int("qk_matmul_output_mode");
  if (mode < kScaled || mode > kWeights) {
    return BadNode(fmt::format("qk_matmul_output_mode is {}; it must be between 0 and 3", mode));
  }
  return static_cast<Mode>(mode);
}

// Checks that the mask can be broadcast to the scores. It may have fewer keys than these.
absl::Status CheckMask(const Shape& mask, const AttentionDims& d) {
  if (mask.empty() || mask.back() > d.keys() || !FitsBroadcastTo(mask, Shape{d.batch, d.q_heads, d.queries, mask.back()})) {
    return BadNode(fmt::format("attn_mask {} cannot be broadcast to the scores {}", ShapeText(mask),
                               ShapeText(Shape{d.batch, d.q_heads, d.queries, d.keys()})));
  }
  return absl::OkStatus();
}

absl::Status Infer(InferContext& ctx) {
  MGE_RETURN_IF_ERROR(SameElementTypes(ctx, {kQ, kK, kPastKey}));
  MGE_RETURN_IF_ERROR(SameElementTypes(ctx, {kV, kPastValue}));
  MGE_RETURN_IF_ERROR(ReadMode(ctx.attrs()).status());
  MGE_RETURN_IF_ERROR(ReadAttentionWindow(ctx.attrs()).status());
  MGE_RETURN_IF_ERROR(ReadDType(ctx.attrs(), "softmax_precision", kFloating, DType::kF32).status());
  if (ctx.has_input(kPastKey) && ctx.has_input(kValidKeys)) {
    return ctx.Invalid("past_key and nonpad_kv_seqlen are given; they exclude each other");
  }
  const TensorType &q = ctx.input(kQ), &k = ctx.input(kK), &v = ctx.input(kV);
  const auto has_rank = [&](int i) { return !ctx.has_input(i) || ctx.input(i).has_rank; };
  if (!q.has_rank || !k.has_rank || !v.has_rank || !has_rank(kPastKey) || !has_rank(kPastValue)) {
    const auto unknown = [](DType t, size_t rank) { return MakeType(t, Shape(rank, kUnknownDim)); };
    ctx.SetOutput(kY, q.has_rank ? unknown(q.dtype, q.dims.size()) : UnrankedType(q.dtype));
    ctx.SetOutput(kPresentKey, unknown(k.dtype, 4));
    ctx.SetOutput(kPresentValue, unknown(v.dtype, 4));
    ctx.SetOutput(kScores, unknown(q.dtype, 4));
    return absl::OkStatus();
  }
  MGE_ASSIGN_OR_RETURN(
      const AttentionDims d,
      ResolveAttention(ctx.attrs(), q.dims, k.dims, v.dims, ctx.has_input(kPastKey) ? &ctx.input(kPastKey).dims : nullptr,
                       ctx.has_input(kPastValue) ? &ctx.input(kPastValue).dims : nullptr));
  if (ctx.has_input(kMask) && ctx.input(kMask).IsStatic() && d.IsStatic()) {
    MGE_RETURN_IF_ERROR(CheckMask(ctx.input(kMask).dims, d));
  }
  ctx.SetOutput(kY, MakeType(q.dtype, d.Output()));
  ctx.SetOutput(kPresentKey, MakeType(k.dtype, {d.batch, d.kv_heads, d.keys(), d.head}));
  ctx.SetOutput(kPresentValue, MakeType(v.dtype, {d.batch, d.kv_heads, d.keys(), d.value_head}));
  ctx.SetOutput(kScores, MakeType(q.dtype, {d.batch, d.q_heads, d.queries, d.keys()}));
  return absl::OkStatus();
}

// Keys or values as batch x kv_heads x keys x size, those of the past in front.
std::vector<double> Joined(const AttentionDims& d, const Tensor& now, /*nullable*/ const Tensor* past, int64_t size) {
  const std::vector<double> new_ones = Doubles(now), old_ones = past ? Doubles(*past) : std::vector<double>();
  std::vector<double> out;
  out.reserve(static_cast<size_t>(d.batch * d.kv_heads * d.keys() * size));
  for (int64_t b = 0; b < d.batch; ++b) {
    for (int64_t h = 0; h < d.kv_heads; ++h) {
      const auto old_at = old_ones.begin() + (b * d.kv_heads + h) * d.past * size;
      out.insert(out.end(), old_at, old_at + d.past * size);
      for (int64_t i = 0; i < d.new_keys; ++i) {
        const auto at = new_ones.begin() +
                        (d.in_rows ? (b * d.new_keys + i) * d.kv_heads + h : (b * d.kv_heads + h) * d.new_keys + i) * size;
        out.insert(out.end(), at, at + size);
      }
    }
  }
  return out;
}

void Store(Tensor& out, int64_t at, double value) {
  DispatchFloating(out.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    out.MutableData<T>()[static_cast<size_t>(at)] = Rounded<T>(value);
  });
}
void StoreAll(Tensor& out, const std::vector<double>& values) {
  for (size_t i = 0; i < values.size(); ++i) Store(out, static_cast<int64_t>(i), values[i]);
}

// The mask as numbers that are added to the scores.
struct Bias {
  std::vector<double> values;  // empty: no mask
  Shape strides;               // of batches, heads, queries and keys
  int64_t keys = 0;            // later keys are masked

  double At(int64_t b, int64_t h, int64_t i, int64_t j) const {
    if (values.empty()) return 0;
    if (j >= keys) return -std::numeric_limits<double>::infinity();
    return values[static_cast<size_t>(b * strides[0] + h * strides[1] + i * strides[2] + j * strides[3])];
  }
};
absl::StatusOr<Bias> ReadBias(EvalContext& ctx, const AttentionDims& d) {
  Bias bias;
  if (!ctx.has_input(kMask)) return bias;
  const Tensor& mask = ctx.input(kMask);
  MGE_RETURN_IF_ERROR(CheckMask(mask.shape(), d));
  bias.keys = mask.shape().back();
  bias.strides = BroadcastStrides(mask.shape(), Shape{d.batch, d.q_heads, d.queries, bias.keys});
  if (mask.dtype() == DType::kBool) {
    for (bool keep : mask.Data<bool>()) bias.values.push_back(keep ? 0 : -std::numeric_limits<double>::infinity());
  } else {
    bias.values = Doubles(mask);
  }
  return bias;
}

absl::Status Eval(EvalContext& ctx) {
  const Tensor &q = ctx.input(kQ), &k = ctx.input(kK), &v = ctx.input(kV);
  const Tensor* past_key = ctx.has_input(kPastKey) ? &ctx.input(kPastKey) : nullptr;
  const Tensor* past_value = ctx.has_input(kPastValue) ? &ctx.input(kPastValue) : nullptr;
  MGE_ASSIGN_OR_RETURN(const AttentionDims d, ResolveAttention(ctx.attrs(), q.shape(), k.shape(), v.shape(),
                                                               past_key ? &past_key->shape() : nullptr,
                                                               past_value ? &past_value->shape() : nullptr));
  MGE_ASSIGN_OR_RETURN(const Mode mode, ReadMode(ctx.attrs()));
  MGE_ASSIGN_OR_RETURN(const AttentionWindow window, ReadAttentionWindow(ctx.attrs()));
  MGE_ASSIGN_OR_RETURN(const Bias bias, ReadBias(ctx, d));
  std::vector<int64_t> valid(static_cast<size_t>(d.batch), d.keys());
  if (ctx.has_input(kValidKeys)) {
    valid = ctx.input(kValidKeys).ToInts();
    if (static_cast<int64_t>(valid.size()) != d.batch) return ctx.Invalid("nonpad_kv_seqlen must have one number per batch");
  }
  MGE_ASSIGN_OR_RETURN(Tensor * y, ctx.Output(kY, q.dtype(), d.Output()));
  MGE_ASSIGN_OR_RETURN(Tensor * present_key, ctx.Output(kPresentKey, k.dtype(), {d.batch, d.kv_heads, d.keys(), d.head}));
  MGE_ASSIGN_OR_RETURN(Tensor * present_value,
                       ctx.Output(kPresentValue, v.dtype(), {d.batch, d.kv_heads, d.keys(), d.value_head}));
  MGE_ASSIGN_OR_RETURN(Tensor * shown, ctx.Output(kScores, q.dtype(), {d.batch, d.q_heads, d.queries, d.keys()}));
  const std::vector<double> queries = Doubles(q), keys = Joined(d, k, past_key, d.head),
                            values = Joined(d, v, past_value, d.value_head);
  StoreAll(*present_key, keys);
  StoreAll(*present_value, values);

  const double scale = AttentionScale(ctx.attrs(), d.head), cap = static_cast<double>(ctx.attrs().Float("softcap"));
  std::vector<double> scores(static_cast<size_t>(d.keys())), sums(static_cast<size_t>(d.value_head));
  for (int64_t b = 0; b < d.batch; ++b) {
    const int64_t own_keys = valid[static_cast<size_t>(b)];
    const int64_t offset = ctx.has_input(kValidKeys) ? own_keys - d.queries : d.past;
    for (int64_t h = 0; h < d.q_heads; ++h) {
      const int64_t group = b * d.kv_heads + h / d.heads_per_key();
      for (int64_t i = 0; i < d.queries; ++i) {
        MGE_RETURN_IF_ERROR(ctx.CheckStop());
        const int64_t row = d.in_rows ? (b * d.queries + i) * d.q_heads + h : (b * d.q_heads + h) * d.queries + i;
        const int64_t scores_row = ((b * d.q_heads + h) * d.queries + i) * d.keys();
        double most = -std::numeric_limits<double>::infinity(), sum = 0;
        bool sees_any = false;
        for (int64_t j = 0; j < d.keys(); ++j) {
          double score = 0;
          for (int64_t c = 0; c < d.head; ++c) {
            score += queries[static_cast<size_t>(row * d.head + c)] *
                     keys[static_cast<size_t>((group * d.keys() + j) * d.head + c)];
          }
          score *= scale;
          if (mode == kScaled) Store(*shown, scores_row + j, score);
          if (cap > 0) score = cap * std::tanh(score / cap);
          if (mode == kCapped) Store(*shown, scores_row + j, score);
          const bool sees = j < own_keys && window.Sees(i + offset, j);
          const double added = sees ? bias.At(b, h, i, j) : -std::numeric_limits<double>::infinity();
          score += added;
          if (mode == kBiased) Store(*shown, scores_row + j, score);
          sees_any |= added != -std::numeric_limits<double>::infinity();
          scores[static_cast<size_t>(j)] = score;
          most = std::max(most, score);
        }
        for (double& s : scores) sum += s = std::exp(s - most);
        std::ranges::fill(sums, 0);
        for (int64_t j = 0; j < d.keys(); ++j) {
          const double weight = sees_any ? scores[static_cast<size_t>(j)] / sum : 0;
          if (mode == kWeights) Store(*shown, scores_row + j, weight);
          for (int64_t c = 0; c < d.value_head; ++c) {
            sums[static_cast<size_t>(c)] += weight * values[static_cast<size_t>((group * d.keys() + j) * d.value_head + c)];
          }
        }
        for (int64_t c = 0; c < d.value_head; ++c) Store(*y, row * d.value_head + c, sums[static_cast<size_t>(c)]);
      }
    }
  }
  return absl::OkStatus();
}

}  // namespace

MGE_OP(attention) = {
    .name = "Attention",
    .doc =
        "softmax(scale * Q K^T + mask) V for each head, with the keys and values of earlier tokens in front. A query that "
        "sees no key gets zeros.",
    .inputs = {{"Q", kFloating},
               {"K", kFloating},
               {"V", kFloating},
               {"attn_mask", kFloating | TypeSet{DType::kBool}, Arity::kOptional},
               {"past_key", kFloating, Arity::kOptional},
               {"past_value", kFloating, Arity::kOptional},
               {"nonpad_kv_seqlen", {DType::kI64}, Arity::kOptional}},
    .outputs = {{"Y"},
                {"present_key", kAnyType, Arity::kOptional},
                {"present_value", kAnyType, Arity::kOptional},
                {"qk_matmul_output", kAnyType, Arity::kOptional}},
    .attrs =
        {{"is_causal", 0, "not 0: a query sees only earlier keys"},
         {"kv_num_heads", AttrType::kInt, Presence::kOptional,
          "heads of keys and values; absent: they are an axis of the input"},
         {"left_window_size", -1, "earlier keys that a query sees; -1: all"},
         {"q_num_heads", AttrType::kInt, Presence::kOptional, "heads of queries; absent: they are an axis of the input"},
         {"qk_matmul_output_mode", 0, "the stage that the last output shows"},
         {"right_window_size", -1, "later keys that a query sees; -1: all"},
         {"scale", AttrType::kFloat, Presence::kOptional, "the factor of the products; absent: 1 / sqrt(size of a head)"},
         {"softcap", 0.0f, "limits the products to this size; 0: no limit"},
         {"softmax_precision", AttrType::kInt, Presence::kOptional, "the element type of the softmax; absent: that of Q"}},
    .infer = Infer,
    .eval = Eval,
    .gradient = ReplacementGradient,
    .since = 23,
    .examples = {"(T[2,3,5,8], T[2,3,7,8], T[2,3,7,9])", "(T[1,5,24], T[1,5,12], T[1,5,12]) {q_num_heads=4, kv_num_heads=2}",
                 "(T[1,2,5,8], T[1,2,5,8], T[1,2,5,8]) {is_causal=1}",
                 "(T[2,5,24], T[2,3,12], T[2,3,18], T[2,1,5,3]) {q_num_heads=4, kv_num_heads=2, scale=0.5, softcap=2}",
                 "(T[1,2,3,4], T[1,2,2,4], T[1,2,2,4], bool[3,2]<1,0,0,0,1,1>, T[1,2,1,4], T[1,2,1,4]) {is_causal=1} -> 3"},
};

}  // namespace mge::op_attention
