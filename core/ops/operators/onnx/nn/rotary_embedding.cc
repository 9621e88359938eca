// SPDX-License-Identifier: Apache-2.0
#include "core/ops/families/movement.h"
#include "core/ops/families/rotary.h"
#include "core/ops/gradient.h"

namespace mge::op_rotary_embedding {
namespace {

absl::Status Infer(InferContext& ctx) {
  const TensorType& x = ctx.input(0);
  MGE_RETURN_IF_ERROR(SameElementTypes(ctx, {0, 1, 2}));
  if (x.has_rank) {
    MGE_ASSIGN_OR_RETURN(RotaryShape s, RotaryShapeOf(ctx.attrs(), x.dims));
    for (int i = 1; i < 3; ++i) {
      if (!ctx.input(i).has_rank) continue;
      MGE_RETURN_IF_ERROR(CheckRotaryCache(i == 1 ? "cos_cache" : "sin_cache", s, ctx.input(i).dims, ctx.has_input(3)));
    }
    if (ctx.has_input(3) && ctx.input(3).has_rank) {
      MGE_RETURN_IF_ERROR(RequireShape("position_ids", ctx.input(3).dims, Shape{s.batch, s.sequence}));
    }
  }
  return SameTypeAsFirst(ctx);
}

// The rows of a cache by batch and token.
struct Cache {
  const Tensor& values;
  /*nullable*/ const Tensor* positions;
  int64_t sequence;

  // Sets `*at` to the index of the row's first element.
  absl::Status Find(const EvalContext& ctx, int64_t b, int64_t t, int64_t* at) const {
    const Shape& shape = values.shape();
    int64_t row = 0;
    if (positions) {
      row = positions->Data<int64_t>()[b * sequence + t];
      MGE_RETURN_IF_ERROR(CheckIndex(ctx, "position", shape[0], &row));
    } else {
      row = (shape[0] == 1 ? 0 : b) * shape[1] + (shape[1] == 1 ? 0 : t);
    }
    *at = row * shape.back();
    return absl::OkStatus();
  }
};

// Rotates the pairs of elements of one head.
template <typename T>
void Rotate(const T* x, const T* cos, const T* sin, int64_t half, bool interleaved, T* y) {
  using C = Compute<T>;
  for (int64_t i = 0; i < half; ++i) {
    const int64_t first = interleaved ? 2 * i : i, second = interleaved ? 2 * i + 1 : i + half;
    const C a = static_cast<C>(x[first]), b = static_cast<C>(x[second]);
    const C c = static_cast<C>(cos[i]), s = static_cast<C>(sin[i]);
    y[first] = static_cast<T>(c * a - s * b);
    y[second] = static_cast<T>(s * a + c * b);
  }
}

absl::Status Eval(EvalContext& ctx) {
  const Tensor& x = ctx.input(0);
  const bool has_positions = ctx.has_input(3);
  MGE_ASSIGN_OR_RETURN(RotaryShape s, RotaryShapeOf(ctx.attrs(), x.shape()));
  MGE_RETURN_IF_ERROR(CheckRotaryCache("cos_cache", s, ctx.input(1).shape(), has_positions));
  MGE_RETURN_IF_ERROR(CheckRotaryCache("sin_cache", s, ctx.input(2).shape(), has_positions));
  const Tensor* positions = has_positions ? &ctx.input(3) : nullptr;
  if (positions) MGE_RETURN_IF_ERROR(RequireShape("position_ids", positions->shape(), Shape{s.batch, s.sequence}));
  const bool interleaved = ctx.attrs().Int("interleaved") != 0;
  const Cache cos{ctx.input(1), positions, s.sequence}, sin{ctx.input(2), positions, s.sequence};
  const int64_t head_step = x.rank() == 4 ? s.sequence * s.head_size : s.head_size;
  const int64_t token_step = x.rank() == 4 ? s.head_size : s.heads * s.head_size;
  MGE_ASSIGN_OR_RETURN(Tensor * y, ctx.Output(0, x.dtype(), x.shape()));
  absl::Status status;
  DispatchFloating(x.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    const T *in = x.Data<T>().data(), *c = cos.values.Data<T>().data(), *d = sin.values.Data<T>().data();
    T* out = y->MutableData<T>().data();
    for (int64_t row = 0; row < s.batch * s.sequence && s.heads > 0; ++row) {
      const int64_t b = row / s.sequence, t = row % s.sequence;
      int64_t at_cos = 0, at_sin = 0;
      status = cos.Find(ctx, b, t, &at_cos);
      if (status.ok()) status = sin.Find(ctx, b, t, &at_sin);
      if (!status.ok()) return;
      for (int64_t h = 0; h < s.heads; ++h) {
        const int64_t at = b * s.heads * s.sequence * s.head_size + h * head_step + t * token_step;
        Rotate(in + at, c + at_cos, d + at_sin, s.rotated / 2, interleaved, out + at);
        std::copy(in + at + s.rotated, in + at + s.head_size, out + at + s.rotated);
      }
    }
  });
  return status;
}

}  // namespace

MGE_OP(rotary_embedding) = {
    .name = "RotaryEmbedding",
    .doc =
        "Rotates pairs of elements of each head by the angles of the token's position: the two halves of the rotated "
        "part, or its neighbours if `interleaved`. With position_ids, they select the rows of the caches.",
    .inputs = {{"X", kFloating},
               {"cos_cache", kFloating},
               {"sin_cache", kFloating},
               {"position_ids", {DType::kI64}, Arity::kOptional}},
    .outputs = {{"Y"}},
    .attrs = {{"interleaved", 0, "not 0: pairs are neighbours, else halves"},
              {"num_heads", 0, "the number of heads; 0: they are an axis of the input"},
              {"rotary_embedding_dim", 0, "rotated elements of a head; 0: all"}},
    .infer = Infer,
    .eval = Eval,
    .gradient = ReplacementGradient,
    .fixed_inputs = 0b110,
    .in_place = {{0, 0}},
    .since = 23,
    .examples = {"(T[2,3,5,8], T[7,4], T[7,4], int64[2,5]<0,1,2,3,4,6,5,4,3,2>)", "(T[2,3,5,8], T[2,5,4], T[2,5,4])",
                 "(T[2,5,24], T[2,5,4], T[2,5,4]) {num_heads=3, interleaved=1}",
                 "(T[1,3,5,8], T[7,2], T[7,2], int64[1,5]<6>) {rotary_embedding_dim=4}",
                 "(T[1,5,24], T[7,2], T[7,2], int64[1,5]<-1>) {num_heads=3, rotary_embedding_dim=4, interleaved=1}"},
};

}  // namespace mge::op_rotary_embedding
