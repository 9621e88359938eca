// SPDX-License-Identifier: Apache-2.0
#include "core/ops/families/fused_mat_mul.h"

#include "fmt/format.h"

namespace mge::op_fused_mat_mul {
namespace {

// Returns an operand with the order of dimensions that MatMul wants. With transBatch, dimension 0 is that of the rows.
absl::StatusOr<ValueId> Turned(FunctionBody& f, int i, bool turn, bool batch_behind) {
  const int64_t rank = f.rank(i);
  if (rank < 2 || (!turn && !batch_behind)) return f.input(i);
  Ints perm(static_cast<size_t>(rank));
  for (int64_t d = 0; d < rank; ++d) perm[static_cast<size_t>(d)] = batch_behind ? (d < rank - 2 ? d + 1 : d) : d;
  if (batch_behind) perm[static_cast<size_t>(rank - 2)] = 0;
  if (turn) std::swap(perm[static_cast<size_t>(rank - 2)], perm[static_cast<size_t>(rank - 1)]);
  return f.Transpose(f.input(i), std::move(perm));
}

absl::StatusOr<bool> Body(FunctionBody& f) {
  const auto flag = [&](std::string_view name) { return f.attrs().Int(name) != 0; };
  if (!f.has_rank(0) || !f.has_rank(1)) return false;
  MGE_ASSIGN_OR_RETURN(const ValueId a, Turned(f, 0, flag("transA"), flag("transBatchA")));
  MGE_ASSIGN_OR_RETURN(const ValueId b, Turned(f, 1, flag("transB"), flag("transBatchB")));
  const float alpha = f.attrs().Float("alpha");
  if (alpha == 1.0f) {
    f.Result(0, "MatMul", {a, b});
  } else {
    f.Result(0, "Mul", {f.Add("MatMul", {a, b}), f.Number(f.dtype(0), alpha)});
  }
  return true;
}

}  // namespace

MGE_OP(fused_mat_mul) = {
    .name = "FusedMatMul",
    .domain = "com.microsoft",
    .doc = "alpha * A B, with operands that may be transposed.",
    .inputs = kFusedMatMulInputs,
    .outputs = {{"Y"}},
    .attrs = kFusedMatMulAttrs,
    .infer = InferByBody,
    .eval = EvalByBody,
    .body = Body,
    .examples = {"(T[5,3], T[5,7]) {transA=1}", "(T[2,3,5], T[2,7,5]) {transB=1, alpha=0.125}",
                 "(T[3,2,5], T[7,2,5]) {transBatchA=1, transBatchB=1, transB=1}", "(T[5], T[5,3])"},
};

}  // namespace mge::op_fused_mat_mul
