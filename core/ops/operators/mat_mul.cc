// SPDX-License-Identifier: Apache-2.0
#include "core/ops/families/matmul.h"

namespace mge::op_mat_mul {
namespace {

absl::Status Infer(InferContext& ctx) {
  MGE_RETURN_IF_ERROR(SameElementTypes(ctx, {0, 1}));
  const TensorType &a = ctx.input(0), &b = ctx.input(1);
  if (!a.has_rank || !b.has_rank) {
    ctx.SetOutput(0, UnrankedType(a.dtype));
    return absl::OkStatus();
  }
  MGE_ASSIGN_OR_RETURN(MatMulShape s, ResolveMatMul(a.dims, b.dims));
  ctx.SetOutput(0, MakeType(a.dtype, std::move(s.out)));
  return absl::OkStatus();
}

absl::Status Eval(EvalContext& ctx) {
  const Tensor &a = ctx.input(0), &b = ctx.input(1);
  if (a.dtype() != b.dtype()) return ctx.Invalid("inputs have different types");
  MGE_ASSIGN_OR_RETURN(MatMulShape s, ResolveMatMul(a.shape(), b.shape()));
  MGE_ASSIGN_OR_RETURN(Tensor * y, ctx.Output(0, a.dtype(), s.out));
  Tensor wide_a = a, wide_b = b;
  if (kFloating.Contains(a.dtype())) {
    MGE_ASSIGN_OR_RETURN(wide_a, ToComputeType(a, ctx.allocator()));
    MGE_ASSIGN_OR_RETURN(wide_b, ToComputeType(b, ctx.allocator()));
  }
  absl::Status status;
  bool known = DispatchNumeric(a.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    using C = Compute<T>;
    T* out = y->MutableData<T>().data();
    status = MultiplyBatches<C>(ctx, s, wide_a.Data<C>().data(), wide_b.Data<C>().data(),
                                [&](int64_t at, auto sum) { out[at] = static_cast<T>(static_cast<C>(sum)); });
  });
  return known ? status : ctx.Unsupported(std::string(DTypeName(a.dtype())));
}

constexpr TypeSet kTypes = kFloating | TypeSet{DType::kI32, DType::kI64, DType::kU32, DType::kU64};

}  // namespace

MGE_OP(mat_mul) = {
    .name = "MatMul",
    .doc = "Matrix product as NumPy's matmul: leading dimensions are batches and are broadcast.",
    .inputs = {{"A", kTypes}, {"B", kTypes}},
    .outputs = {{"Y"}},
    .infer = Infer,
    .eval = Eval,
    .examples = {"(T[3,5], T[5,7])", "(T[1,1], T[1,1])", "(T[2,3,17], T[17,9])", "(T[2,1,5,3], T[4,3,6])",
                 "(T[19], T[19,3])", "(T[33,65], T[65,31])", "(T[97,130], T[130,67])", "(T[1,257], T[257,129])",
                 "(T[37,37], =0)"},
};

}  // namespace mge::op_mat_mul
