// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <vector>

#include "core/ops/infer_checks.h"
#include "core/ops/op_helpers.h"

namespace mge::op_linear_attention {
namespace {

enum Input { kQuery, kKey, kValue, kPast, kDecay, kBeta };

struct Rule {
  bool gated = false;  // the state decays
  bool delta = false;  // the new value is corrected by that which the state holds for the key
};

struct Sizes {
  int64_t batch = 0, length = 0, q_heads = 0, kv_heads = 0, key_size = 0, value_size = 0;
  int64_t decays = 0;  // per head: 1, or key_size
  int64_t betas = 0;   // kv_heads, or 1
};

absl::StatusOr<Rule> ReadRule(const Attributes& attrs, bool has_decay, bool has_beta) {
  MGE_ASSIGN_OR_RETURN(const int choice, ReadChoice(attrs, "update_rule", {"linear", "gated", "delta", "gated_delta"}));
  const Rule rule = {(choice & 1) != 0, (choice & 2) != 0};
  auto check = [&](std::string_view input, bool wanted, bool given) -> absl::Status {
    if (wanted == given) return absl::OkStatus();
    return BadNode(
        fmt::format("update_rule '{}' {} the input {}", attrs.Text("update_rule"), wanted ? "needs" : "excludes", input));
  };
  MGE_RETURN_IF_ERROR(check("decay", rule.gated, has_decay));
  MGE_RETURN_IF_ERROR(check("beta", rule.delta, has_beta));
  return rule;
}

// Returns shape[2] / heads.
absl::StatusOr<int64_t> HeadSize(std::string_view name, const Shape& shape, int64_t heads) {
  if (shape[2] % heads == 0) return shape[2] / heads;
  return BadNode(
      fmt::format("{} has shape {}; its last dimension must be a multiple of the {} heads", name, ShapeText(shape), heads));
}

// All sizes must be known. Optional shapes are null if absent.
absl::StatusOr<Sizes> Resolve(const Attributes& attrs, const Shape& q, const Shape& k, const Shape& v,
                              /*nullable*/ const Shape* past, /*nullable*/ const Shape* decay,
                              /*nullable*/ const Shape* beta) {
  MGE_RETURN_IF_ERROR(RequireRank("query [batch, length, heads * size]", q, 3));
  MGE_RETURN_IF_ERROR(RequireRank("key [batch, length, heads * size]", k, 3));
  MGE_RETURN_IF_ERROR(RequireRank("value [batch, length, heads * size]", v, 3));
  Sizes s = {.batch = q[0], .length = q[1], .q_heads = attrs.Int("q_num_heads"), .kv_heads = attrs.Int("kv_num_heads")};
  if (s.q_heads < 1 || s.kv_heads < 1 || s.q_heads % s.kv_heads != 0) {
    return BadNode(fmt::format("q_num_heads = {} must be a positive multiple of kv_num_heads = {}", s.q_heads, s.kv_heads));
  }
  MGE_ASSIGN_OR_RETURN(s.key_size, HeadSize("query", q, s.q_heads));
  MGE_ASSIGN_OR_RETURN(s.value_size, HeadSize("value", v, s.kv_heads));
  MGE_RETURN_IF_ERROR(RequireShape("key", k, Shape{s.batch, s.length, s.kv_heads * s.key_size}));
  MGE_RETURN_IF_ERROR(RequireShape("value", v, Shape{s.batch, s.length, v[2]}));
  if (past) MGE_RETURN_IF_ERROR(RequireShape("past_state", *past, Shape{s.batch, s.kv_heads, s.key_size, s.value_size}));
  if (decay) {
    MGE_RETURN_IF_ERROR(RequireRank("decay", *decay, 3));
    s.decays = decay->back() == s.kv_heads ? 1 : s.key_size;
    MGE_RETURN_IF_ERROR(RequireShape("decay", *decay, Shape{s.batch, s.length, s.kv_heads * s.decays}));
  }
  if (beta) {
    MGE_RETURN_IF_ERROR(RequireRank("beta", *beta, 3));
    s.betas = beta->back() == 1 ? 1 : s.kv_heads;
    MGE_RETURN_IF_ERROR(RequireShape("beta", *beta, Shape{s.batch, s.length, s.betas}));
  }
  return s;
}

absl::Status Infer(InferContext& ctx) {
  MGE_RETURN_IF_ERROR(SameElementTypes(ctx, {kQuery, kKey, kValue, kDecay, kBeta}));
  MGE_RETURN_IF_ERROR(ReadRule(ctx.attrs(), ctx.has_input(kDecay), ctx.has_input(kBeta)).status());
  const TensorType& q = ctx.input(kQuery);
  TensorType y = MakeType(q.dtype, Shape(3, kUnknownDim));
  TensorType state = MakeType(ctx.has_input(kPast) ? ctx.input(kPast).dtype : q.dtype, Shape(4, kUnknownDim));
  bool known = true;
  for (int i = kQuery; i <= kBeta; ++i) known = known && (!ctx.has_input(i) || ctx.input(i).IsStatic());
  if (known) {
    auto shape_of = [&](int i) { return ctx.has_input(i) ? &ctx.input(i).dims : nullptr; };
    MGE_ASSIGN_OR_RETURN(const Sizes s, Resolve(ctx.attrs(), q.dims, ctx.input(kKey).dims, ctx.input(kValue).dims,
                                                shape_of(kPast), shape_of(kDecay), shape_of(kBeta)));
    y.dims = {s.batch, s.length, s.q_heads * s.value_size};
    state.dims = {s.batch, s.kv_heads, s.key_size, s.value_size};
  }
  ctx.SetOutput(0, std::move(y));
  ctx.SetOutput(1, std::move(state));
  return absl::OkStatus();
}

// The operands in float32. `decay` and `beta` are null if the rule does not need them.
struct Operands {
  const float *q, *k, *v;
  /*nullable*/ const float *decay, *beta;
};

// Updates the state [key_size, value_size] of one head with one position of the sequence. `at` counts positions of all batches.
void Update(const Sizes& s, const Operands& in, int64_t at, int64_t head, float* state) {
  const int64_t place = at * s.kv_heads + head;
  const float* k = in.k + place * s.key_size;
  std::vector<float> value(in.v + place * s.value_size, in.v + (place + 1) * s.value_size);
  for (int64_t i = 0; in.decay && i < s.key_size; ++i) {
    const float factor = std::exp(in.decay[place * s.decays + (s.decays == 1 ? 0 : i)]);
    for (int64_t j = 0; j < s.value_size; ++j) state[i * s.value_size + j] *= factor;
  }
  for (int64_t j = 0; in.beta && j < s.value_size; ++j) {
    float held = 0;
    for (int64_t i = 0; i < s.key_size; ++i) held += state[i * s.value_size + j] * k[i];
    value[j] = in.beta[at * s.betas + (s.betas == 1 ? 0 : head)] * (value[j] - held);
  }
  for (int64_t i = 0; i < s.key_size; ++i) {
    for (int64_t j = 0; j < s.value_size; ++j) state[i * s.value_size + j] += k[i] * value[j];
  }
}

absl::Status Eval(EvalContext& ctx) {
  const Tensor& query = ctx.input(kQuery);
  auto shape_of = [&](int i) { return ctx.has_input(i) ? &ctx.input(i).shape() : nullptr; };
  MGE_ASSIGN_OR_RETURN(const Sizes s, Resolve(ctx.attrs(), query.shape(), ctx.input(kKey).shape(), ctx.input(kValue).shape(),
                                              shape_of(kPast), shape_of(kDecay), shape_of(kBeta)));
  MGE_RETURN_IF_ERROR(ReadRule(ctx.attrs(), ctx.has_input(kDecay), ctx.has_input(kBeta)).status());
  Tensor wide[kBeta + 1];
  for (int i = kQuery; i <= kBeta; ++i) {
    if (!ctx.has_input(i)) continue;
    MGE_ASSIGN_OR_RETURN(wide[i], ToComputeType(ctx.input(i), ctx.allocator()));
  }
  auto data_of = [&](int i) { return ctx.has_input(i) ? wide[i].Data<float>().data() : nullptr; };
  const Operands in = {data_of(kQuery), data_of(kKey), data_of(kValue), data_of(kDecay), data_of(kBeta)};
  float scale = ctx.attrs().Float("scale");
  if (scale == 0) scale = 1 / std::sqrt(static_cast<float>(s.key_size));

  const DType state_type = ctx.has_input(kPast) ? ctx.input(kPast).dtype() : query.dtype();
  MGE_ASSIGN_OR_RETURN(Tensor * y, ctx.Output(0, query.dtype(), {s.batch, s.length, s.q_heads * s.value_size}));
  MGE_ASSIGN_OR_RETURN(Tensor * present, ctx.Output(1, state_type, {s.batch, s.kv_heads, s.key_size, s.value_size}));
  const int64_t state_size = s.key_size * s.value_size;
  MGE_ASSIGN_OR_RETURN(Tensor scratch, Scratch<float>(ctx, state_size));
  std::span<float> state = scratch.MutableData<float>();
  auto run = [&](auto out_tag) {
    using T = typename decltype(out_tag)::type;
    T* out = y->MutableData<T>().data();
    for (int64_t row = 0; row < s.batch * s.kv_heads; ++row) {
      const int64_t batch = row / s.kv_heads, head = row % s.kv_heads, share = s.q_heads / s.kv_heads;
      if (ctx.has_input(kPast)) {
        std::copy_n(wide[kPast].Data<float>().begin() + row * state_size, state_size, state.begin());
      } else {
        std::fill(state.begin(), state.end(), 0.0F);
      }
      for (int64_t at = batch * s.length; at < (batch + 1) * s.length; ++at) {
        Update(s, in, at, head, state.data());
        for (int64_t reader = head * share; reader < (head + 1) * share; ++reader) {
          const float* q = in.q + (at * s.q_heads + reader) * s.key_size;
          for (int64_t j = 0; j < s.value_size; ++j) {
            float sum = 0;
            for (int64_t i = 0; i < s.key_size; ++i) sum += q[i] * state[i * s.value_size + j];
            out[(at * s.q_heads + reader) * s.value_size + j] = static_cast<T>(scale * sum);
          }
        }
      }
      DispatchFloating(state_type, [&](auto state_tag) {
        using S = typename decltype(state_tag)::type;
        std::transform(state.begin(), state.end(), present->MutableData<S>().begin() + row * state_size,
                       [](float v) { return static_cast<S>(v); });
      });
    }
  };
  return DispatchFloating(query.dtype(), run) ? absl::OkStatus() : ctx.Unsupported(std::string(DTypeName(query.dtype())));
}

constexpr TypeSet kTypes = {DType::kF32, DType::kF16, DType::kBF16};

}  // namespace

MGE_OP(linear_attention) = {
    .name = "LinearAttention",
    .doc =
        "Attention with a state instead of a cache. For each position: state = exp(decay) * state + key * value; output = "
        "scale * "
        "query * state. The delta rules add beta * (value - key * state) instead of the value. Computed in float32.",
    .inputs = {{"query", kTypes},
               {"key", kTypes},
               {"value", kTypes},
               {"past_state", kTypes, Arity::kOptional},
               {"decay", kTypes, Arity::kOptional},
               {"beta", kTypes, Arity::kOptional}},
    .outputs = {{"output"}, {"present_state"}},
    .attrs = {{"q_num_heads", AttrType::kInt, Presence::kRequired, "the heads of the query, a multiple of kv_num_heads"},
              {"kv_num_heads", AttrType::kInt, Presence::kRequired, "the heads of key, value and state"},
              {"scale", 0.0f, "of the output; 0: 1 / sqrt(size of a key)"},
              {"update_rule", "gated_delta", "linear, gated, delta or gated_delta"},
              {"chunk_size", 64, "a hint, ignored"}},
    .infer = Infer,
    .eval = Eval,
    .since = 27,
    .examples = {"(T[2,3,8], T[2,3,8], T[2,3,6]) {q_num_heads=2, kv_num_heads=2, update_rule=\"linear\"} -> 2",
                 "(T[1,5,12], T[1,5,6], T[1,5,4], T[1,2,3,2], T[1,5,2], T[1,5,1]) {q_num_heads=4, kv_num_heads=2} -> 2",
                 "(T[2,4,6], T[2,4,6], T[2,4,6], _, T[2,4,6]) {q_num_heads=2, kv_num_heads=2, update_rule=\"gated\"} -> 2"},
};

}  // namespace mge::op_linear_attention
