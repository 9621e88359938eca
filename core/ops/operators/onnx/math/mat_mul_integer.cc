// SPDX-License-Identifier: Apache-2.0
#include "core/ops/families/matmul.h"

namespace mge::op_mat_mul_integer {
namespace {

absl::Status Infer(InferContext& ctx) {
  const TensorType &a = ctx.input(0), &b = ctx.input(1);
  if (!a.has_rank || !b.has_rank) {
    ctx.SetOutput(0, UnrankedType(DType::kI32));
    return absl::OkStatus();
  }
  MGE_ASSIGN_OR_RETURN(MatMulShape s, ResolveMatMul(a.dims, b.dims));
  ctx.SetOutput(0, MakeType(DType::kI32, std::move(s.out)));
  return absl::OkStatus();
}

// Returns x - zero as int32. The zero point is one number, or one per row of A, or one per column of B.
absl::StatusOr<Tensor> Shifted(EvalContext& ctx, int which) {
  const Tensor& x = ctx.input(which);
  MGE_ASSIGN_OR_RETURN(Tensor out, Tensor::Create(DType::kI32, x.shape(), ctx.allocator()));
  Tensor zero;
  if (ctx.has_input(which + 2)) {
    zero = ctx.input(which + 2);
    if (zero.dtype() != x.dtype()) return ctx.Invalid("a zero point must have the type of its matrix");
    Shape shape = zero.shape();
    if (which == 0 && shape.size() == 1 && shape[0] != 1) shape.push_back(1);
    absl::StatusOr<Shape> both = BroadcastShapes(x.shape(), shape);
    if (!both.ok() || *both != x.shape()) {
      return ctx.Invalid(fmt::format("a zero point of shape {} is not valid for a matrix of shape {}",
                                     ShapeText(zero.shape()), ShapeText(x.shape())));
    }
    zero = zero.Reshaped(std::move(shape));
  }
  int32_t* to = out.MutableData<int32_t>().data();
  auto shift = [&](auto tag) {
    using T = typename decltype(tag)::type;
    const T* from = x.Data<T>().data();
    const T none = 0;
    const T* by = zero.defined() ? zero.Data<T>().data() : &none;
    ForBroadcast(x.shape(), zero.shape(), x.shape(),
                 [&](int64_t i, int64_t, int64_t z) { to[i] = static_cast<int32_t>(from[i]) - by[z]; });
  };
  if (x.dtype() == DType::kI8) shift(TypeTag<int8_t>{});
  if (x.dtype() == DType::kU8) shift(TypeTag<uint8_t>{});
  return out;
}

absl::Status Eval(EvalContext& ctx) {
  MGE_ASSIGN_OR_RETURN(MatMulShape s, ResolveMatMul(ctx.input(0).shape(), ctx.input(1).shape()));
  MGE_ASSIGN_OR_RETURN(Tensor a, Shifted(ctx, 0));
  MGE_ASSIGN_OR_RETURN(Tensor b, Shifted(ctx, 1));
  MGE_ASSIGN_OR_RETURN(Tensor * y, ctx.Output(0, DType::kI32, s.out));
  int32_t* out = y->MutableData<int32_t>().data();
  return MultiplyBatches<int32_t>(ctx, s, a.Data<int32_t>().data(), b.Data<int32_t>().data(),
                                  [&](int64_t at, uint32_t sum) { out[at] = static_cast<int32_t>(sum); });
}

constexpr TypeSet kBytes = {DType::kI8, DType::kU8};

}  // namespace

MGE_OP(mat_mul_integer) = {
    .name = "MatMulInteger",
    .doc = "Matrix product of (A - a_zero_point) and (B - b_zero_point) in int32.",
    .inputs = {{"A", kBytes},
               {"B", kBytes},
               {"a_zero_point", kBytes, Arity::kOptional},
               {"b_zero_point", kBytes, Arity::kOptional}},
    .outputs = {{"Y"}},
    .infer = Infer,
    .eval = Eval,
    .since = 10,
    .examples = {"(T[3,5]@0:9, T[5,7]@0:9)"},
};

}  // namespace mge::op_mat_mul_integer
