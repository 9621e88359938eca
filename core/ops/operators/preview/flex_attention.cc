// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "core/ops/families/cast.h"
#include "core/ops/families/control_flow.h"
#include "core/ops/infer_checks.h"
#include "core/ops/op_helpers.h"

namespace mge::op_flex_attention {
namespace {

enum Input { kQ, kK, kV };

struct Sizes {
  int64_t batch, q_heads, kv_heads, queries, keys, head_size, value_size;
  Shape Scores() const { return {batch, q_heads, queries, keys}; }
};

// All sizes must be known.
absl::StatusOr<Sizes> Resolve(const Shape& q, const Shape& k, const Shape& v) {
  MGE_RETURN_IF_ERROR(RequireRank("Q [batch, heads, length, size]", q, 4));
  MGE_RETURN_IF_ERROR(RequireRank("K [batch, heads, length, size]", k, 4));
  MGE_RETURN_IF_ERROR(RequireRank("V [batch, heads, length, size]", v, 4));
  const Sizes s = {q[0], q[1], k[1], q[2], k[2], q[3], v[3]};
  MGE_RETURN_IF_ERROR(RequireShape("K", k, Shape{s.batch, s.kv_heads, s.keys, s.head_size}));
  MGE_RETURN_IF_ERROR(RequireShape("V", v, Shape{s.batch, s.kv_heads, s.keys, s.value_size}));
  if (s.kv_heads < 1 || s.q_heads % s.kv_heads != 0) {
    return BadNode(fmt::format("Q has {} heads; it must be a multiple of the {} heads of K", s.q_heads, s.kv_heads));
  }
  return s;
}

// Returns the type of the scores that the bodies read.
absl::StatusOr<DType> ScoreType(const Attributes& attrs, DType input) {
  const DType fallback = input == DType::kF64 ? DType::kF64 : DType::kF32;
  return ReadDType(attrs, "softmax_precision", kFloating, fallback);
}

absl::Status InferModifier(InferContext& ctx, std::string_view name, const TensorType& scores) {
  const GraphPtr body = ctx.attrs().GraphOrNull(name);
  if (!body) return absl::OkStatus();
  if (FormalInputs(*body) != 1 || body->outputs().size() != 1) {
    return ctx.Invalid(fmt::format("{} has {} inputs and {} outputs; it must have one of each", name, FormalInputs(*body),
                                   body->outputs().size()));
  }
  const ValueType input = {scores, ValueKind::kTensor};
  return ctx.InferBody(*body, {&input, 1}).status();
}

absl::Status Infer(InferContext& ctx) {
  MGE_RETURN_IF_ERROR(SameElementTypes(ctx, {kQ, kK, kV}));
  const TensorType &q = ctx.input(kQ), &k = ctx.input(kK), &v = ctx.input(kV);
  MGE_ASSIGN_OR_RETURN(const DType type, ScoreType(ctx.attrs(), q.dtype));
  TensorType y = MakeType(q.dtype, Shape(4, kUnknownDim)), scores = MakeType(type, Shape(4, kUnknownDim));
  if (q.IsStatic() && k.IsStatic() && v.IsStatic()) {
    MGE_ASSIGN_OR_RETURN(const Sizes s, Resolve(q.dims, k.dims, v.dims));
    y.dims = {s.batch, s.q_heads, s.queries, s.value_size};
    scores.dims = s.Scores();
  }
  MGE_RETURN_IF_ERROR(InferModifier(ctx, "score_mod", scores));
  MGE_RETURN_IF_ERROR(InferModifier(ctx, "prob_mod", scores));
  ctx.SetOutput(0, std::move(y));
  return absl::OkStatus();
}

// Runs a body on the scores, in the type `type`. Returns them unchanged if the node has no such body.
absl::StatusOr<Tensor> Modify(EvalContext& ctx, std::string_view name, Tensor scores, DType type) {
  const GraphPtr body = ctx.attrs().GraphOrNull(name);
  if (!body) return scores;
  const DType wide = scores.dtype();
  std::vector<HostValue> inputs(1);
  MGE_ASSIGN_OR_RETURN(inputs[0].tensor, CastTensor(scores, type, ctx.allocator()));
  MGE_ASSIGN_OR_RETURN(std::vector<HostValue> outputs, ctx.RunBody(*body, std::move(inputs)));
  const Tensor& out = outputs[0].tensor;
  if (out.dtype() != type) {
    return ctx.Invalid(fmt::format("{} returns {}; it must return {}", name, DTypeName(out.dtype()), DTypeName(type)));
  }
  MGE_RETURN_IF_ERROR(RequireShape(fmt::format("the output of {}", name), out.shape(), scores.shape()));
  return CastTensor(out, wide, ctx.allocator());
}

// Computes the probabilities of each row in place.
template <typename A>
void Softmax(std::span<A> scores, int64_t keys) {
  for (auto row = scores.begin(); row < scores.end(); row += keys) {
    const A largest = *std::max_element(row, row + keys);
    A sum = 0;
    for (auto at = row; at < row + keys; ++at) sum += * at = std::exp(*at - largest);
    for (auto at = row; at < row + keys; ++at) *at /= sum;
  }
}

// Calls visit(row of the scores, row of Q and Y, first row of K and V).
template <typename F>
void ForEachRow(const Sizes& s, F visit) {
  for (int64_t row = 0; row < s.batch * s.q_heads * s.queries; ++row) {
    const int64_t head = row / s.queries % s.q_heads, batch = row / s.queries / s.q_heads;
    visit(row, (batch * s.kv_heads + head / (s.q_heads / s.kv_heads)) * s.keys);
  }
}

template <typename A>
absl::Status Run(EvalContext& ctx, const Sizes& s, DType type, Tensor* y) {
  Tensor wide[3];
  for (int i = kQ; i <= kV; ++i) {
    MGE_ASSIGN_OR_RETURN(wide[i], CastTensor(ctx.input(i), kDTypeOf<A>, ctx.allocator()));
  }
  const A *q = wide[kQ].Data<A>().data(), *k = wide[kK].Data<A>().data(), *v = wide[kV].Data<A>().data();
  const A scale =
      ctx.attrs().Has("scale") ? static_cast<A>(ctx.attrs().Float("scale")) : 1 / std::sqrt(static_cast<A>(s.head_size));
  MGE_ASSIGN_OR_RETURN(Tensor scores, Tensor::Create(kDTypeOf<A>, s.Scores(), ctx.allocator()));
  ForEachRow(s, [&, out = scores.MutableData<A>().data()](int64_t row, int64_t first) {
    for (int64_t key = 0; key < s.keys; ++key) {
      A sum = 0;
      for (int64_t i = 0; i < s.head_size; ++i) sum += q[row * s.head_size + i] * k[(first + key) * s.head_size + i];
      out[row * s.keys + key] = scale * sum;
    }
  });
  MGE_RETURN_IF_ERROR(ctx.CheckStop());
  MGE_ASSIGN_OR_RETURN(const Tensor modified, Modify(ctx, "score_mod", std::move(scores), type));
  MGE_ASSIGN_OR_RETURN(Tensor weights, Tensor::Create(kDTypeOf<A>, s.Scores(), ctx.allocator()));
  std::copy_n(modified.Data<A>().begin(), modified.elements(), weights.MutableData<A>().begin());
  Softmax(weights.MutableData<A>(), s.keys);
  MGE_ASSIGN_OR_RETURN(weights, Modify(ctx, "prob_mod", std::move(weights), type));
  MGE_ASSIGN_OR_RETURN(Tensor sums, Tensor::Create(kDTypeOf<A>, y->shape(), ctx.allocator()));
  ForEachRow(s, [&, w = weights.Data<A>(), out = sums.MutableData<A>()](int64_t row, int64_t first) {
    for (int64_t j = 0; j < s.value_size; ++j) {
      A sum = 0;
      for (int64_t key = 0; key < s.keys; ++key) sum += w[row * s.keys + key] * v[(first + key) * s.value_size + j];
      out[row * s.value_size + j] = sum;
    }
  });
  MGE_ASSIGN_OR_RETURN(sums, CastTensor(sums, y->dtype(), ctx.allocator()));
  std::memcpy(y->mutable_data(), sums.data(), static_cast<size_t>(y->bytes()));
  return absl::OkStatus();
}

absl::Status Eval(EvalContext& ctx) {
  const Tensor& q = ctx.input(kQ);
  MGE_ASSIGN_OR_RETURN(const Sizes s, Resolve(q.shape(), ctx.input(kK).shape(), ctx.input(kV).shape()));
  MGE_ASSIGN_OR_RETURN(const DType type, ScoreType(ctx.attrs(), q.dtype()));
  MGE_ASSIGN_OR_RETURN(Tensor * y, ctx.Output(0, q.dtype(), {s.batch, s.q_heads, s.queries, s.value_size}));
  if (y->elements() == 0) return absl::OkStatus();
  if (s.keys == 0) return ctx.Invalid("K has no positions; the softmax needs at least one");
  const bool is_double = q.dtype() == DType::kF64 || type == DType::kF64;
  return is_double ? Run<double>(ctx, s, type, y) : Run<float>(ctx, s, type, y);
}

}  // namespace

MGE_OP(flex_attention) = {
    .name = "FlexAttention",
    .domain = "ai.onnx.preview",
    .doc =
        "Y = prob_mod(Softmax(score_mod(scale * Q * transposed K))) * V. Both bodies map a tensor [batch, heads of Q, "
        "length of "
        "Q, length of K] to one of the same type and shape.",
    .inputs = {{"Q", kFloating}, {"K", kFloating}, {"V", kFloating}},
    .outputs = {{"Y"}},
    .attrs = {{"scale", AttrType::kFloat, Presence::kOptional, "absent: 1 / sqrt(size of a head)"},
              {"softmax_precision", AttrType::kInt, Presence::kOptional,
               "the element type that the bodies read; absent: float64 for float64, else float32"},
              {"score_mod", AttrType::kGraph, Presence::kOptional, "changes the scores; absent: they stay"},
              {"prob_mod", AttrType::kGraph, Presence::kOptional, "changes the probabilities; absent: they stay"}},
    .infer = Infer,
    .eval = Eval,
    .traits = kHostOnly};

}  // namespace mge::op_flex_attention
