// SPDX-License-Identifier: Apache-2.0
#include "core/ops/families/movement.h"
#include "core/ops/gradient.h"
#include "core/ops/op_helpers.h"

namespace mge::op_transpose {
namespace {

// Returns the attribute "perm", or the axes in reverse order. Fails unless it holds every axis once.
absl::StatusOr<Ints> Permutation(const Attributes& attrs, int64_t rank) {
  Ints perm = attrs.IntList("perm");
  if (!attrs.Has("perm")) {
    for (int64_t i = rank; i-- > 0;) perm.push_back(i);
    return perm;
  }
  std::vector<bool> seen(rank, false);
  bool good = static_cast<int64_t>(perm.size()) == rank;
  for (int64_t& p : perm) {
    good = good && p >= -rank && p < rank;
    if (!good) break;
    if (p < 0) p += rank;
    good = !seen[p];
    seen[p] = true;
  }
  if (!good) return BadNode(fmt::format("perm {} is not a permutation of {} axes", ShapeText(perm), rank));
  return perm;
}

absl::Status Infer(InferContext& ctx) {
  const TensorType& x = ctx.input(0);
  if (!x.has_rank) {
    ctx.SetOutput(0, UnrankedType(x.dtype));
    return absl::OkStatus();
  }
  MGE_ASSIGN_OR_RETURN(Ints perm, Permutation(ctx.attrs(), x.dims.size()));
  TensorType out = MakeType(x.dtype, {});
  for (int64_t p : perm) {
    out.dims.push_back(x.dims[p]);
    if (!x.symbols.empty()) out.symbols.push_back(x.symbols[p]);
  }
  ctx.SetOutput(0, std::move(out));
  return absl::OkStatus();
}

absl::Status Normalize(InferContext& ctx, Attributes& attrs) {
  if (!ctx.input(0).has_rank) return absl::OkStatus();
  MGE_ASSIGN_OR_RETURN(Ints perm, Permutation(attrs, ctx.input(0).dims.size()));
  attrs.SetImplied("perm", std::move(perm));
  return absl::OkStatus();
}

absl::Status Eval(EvalContext& ctx) {
  const Tensor& x = ctx.input(0);
  MGE_ASSIGN_OR_RETURN(Ints perm, Permutation(ctx.attrs(), x.rank()));
  Shape in = Strides(x.shape());
  Shape out, strides;
  for (int64_t p : perm) {
    out.push_back(x.shape()[p]);
    strides.push_back(in[p]);
  }
  MGE_ASSIGN_OR_RETURN(Tensor * y, ctx.Output(0, x.dtype(), std::move(out)));
  CopyStrided(x, 0, strides, *y);
  return absl::OkStatus();
}

absl::Status Gradient(GradientContext& g) {
  MGE_ASSIGN_OR_RETURN(const int64_t rank, g.Rank(0));
  MGE_ASSIGN_OR_RETURN(const Ints perm, Permutation(g.attrs(), rank));
  Ints inverse(perm.size());
  for (size_t i = 0; i < perm.size(); ++i) inverse[static_cast<size_t>(perm[i])] = static_cast<int64_t>(i);
  return g.Set(0, g.Of("Transpose", {g.dy().id()}, OneAttribute("perm", inverse)));
}

}  // namespace

MGE_OP(transpose) = {.name = "Transpose",
                     .doc = "Output dimension i is input dimension perm[i]. Without perm, the order is reversed.",
                     .inputs = {{"data"}},
                     .outputs = {{"transposed"}},
                     .attrs = {{"perm", AttrType::kInts, Presence::kNormal,
                                "the input's axes in the output's order; reversed if a model lacks it"}},
                     .infer = Infer,
                     .eval = Eval,
                     .normalize = Normalize,
                     .gradient = Gradient,
                     .traits = kTranspose,
                     .examples = {"(T[3,5,7]) {perm=[2,0,1]}", "(T[2,3,4,5]) {perm=[0,2,3,1]}", "(T[33,17])", "(T[70001,2])",
                                  "(T[257,390])", "(T[2,1,3,2,2,3]) {perm=[5,0,3,1,4,2]}"}};

}  // namespace mge::op_transpose
