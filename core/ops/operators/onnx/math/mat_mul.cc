// SPDX-License-Identifier: Apache-2.0
#include "core/ops/families/matmul.h"
#include "core/ops/gradient.h"

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

// Swaps the last two dimensions.
Term Swapped(const Term& x, int64_t rank) {
  Ints perm(static_cast<size_t>(rank));
  for (int64_t i = 0; i < rank; ++i) perm[static_cast<size_t>(i)] = i;
  std::swap(perm[static_cast<size_t>(rank - 1)], perm[static_cast<size_t>(rank - 2)]);
  return x.builder().Of("Transpose", {x.id()}, OneAttribute("perm", perm));
}

// dA = dY B', dB = A' dY. A vector is a matrix of one row or column. If only A has batches, they are rows of one matrix.
absl::Status Gradient(GradientContext& g) {
  MGE_ASSIGN_OR_RETURN(int64_t rank_a, g.Rank(0));
  MGE_ASSIGN_OR_RETURN(int64_t rank_b, g.Rank(1));
  auto raised = [&](const Term& x, int64_t axis) { return g.Of("Unsqueeze", {x.id(), g.Integers({axis})}); };
  auto rows = [&](const Term& x) {  // [..., n] as [-1, n]
    const ValueId last = g.Add("Shape", {x.id()}, IntAttribute("start", -1));
    return g.Of("Reshape", {x.id(), g.Add("Concat", {g.Integers({-1}), last}, IntAttribute("axis", 0))});
  };
  Term a = g.x(0), b = g.x(1), dy = g.dy();
  if (rank_b == 1) dy = raised(dy, -1);
  if (rank_a == 1) dy = raised(dy, -2);
  if (rank_a == 1) a = raised(a, 0);
  if (rank_b == 1) b = raised(b, 1);
  const int64_t wide_a = std::max<int64_t>(rank_a, 2), wide_b = std::max<int64_t>(rank_b, 2);
  if (g.wants(0)) {
    const Term da = g.SumTo(Binary("MatMul", dy, Swapped(b, wide_b)), a);
    MGE_RETURN_IF_ERROR(g.Set(0, rank_a == 1 ? g.ReshapeLike(da, g.x(0)) : da));
  }
  if (!g.wants(1)) return absl::OkStatus();
  const bool flat = wide_b == 2 && wide_a > 2;
  const Term db =
      flat ? Binary("MatMul", Swapped(rows(a), 2), rows(dy)) : g.SumTo(Binary("MatMul", Swapped(a, wide_a), dy), b);
  return g.Set(1, rank_b == 1 ? g.ReshapeLike(db, g.x(1)) : db);
}

}  // namespace

MGE_OP(mat_mul) = {
    .name = "MatMul",
    .doc = "Matrix product as NumPy's matmul: leading dimensions are batches and are broadcast.",
    .inputs = {{"A", kTypes}, {"B", kTypes}},
    .outputs = {{"Y"}},
    .infer = Infer,
    .eval = Eval,
    .gradient = Gradient,
    .examples = {"(T[3,5], T[5,7])", "(T[1,1], T[1,1])", "(T[2,3,17], T[17,9])", "(T[2,1,5,3], T[4,3,6])",
                 "(T[19], T[19,3])", "(T[33,65], T[65,31])", "(T[97,130], T[130,67])", "(T[1,257], T[257,129])",
                 "(T[37,37], =0)", "(T[3,0], T[0,5])", "(T[5,1030], T[1030,70]) once"},
};

}  // namespace mge::op_mat_mul
