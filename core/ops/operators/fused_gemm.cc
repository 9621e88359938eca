// SPDX-License-Identifier: Apache-2.0
#include "core/ops/families/activation.h"

namespace mge::op_fused_gemm {
namespace {

absl::StatusOr<bool> Body(FunctionBody& f) {
  const ValueId sum = f.Add("Gemm", {f.input(0), f.input(1), f.input(2)}, f.Only({"alpha", "beta", "transA", "transB"}));
  MGE_RETURN_IF_ERROR(AddActivation(f, sum, f.dtype(0), f.attrs().Text("activation"), ActivationParameters(f.attrs())));
  return true;
}

}  // namespace

MGE_OP(fused_gemm) = {
    .name = "FusedGemm",
    .domain = "com.microsoft",
    .doc = "An activation of a Gemm.",
    .inputs = {{"A", kFloating}, {"B", kFloating}, {"C", kFloating, Arity::kOptional}},
    .outputs = {{"Y"}},
    .attrs = {{"activation", AttrType::kText},
              {"activation_alpha", AttrType::kFloat},
              {"activation_beta", AttrType::kFloat},
              {"activation_gamma", AttrType::kFloat},
              {"alpha", AttrType::kFloat},
              {"beta", AttrType::kFloat},
              {"transA", AttrType::kInt},
              {"transB", AttrType::kInt}},
    .infer = InferByBody,
    .eval = EvalByBody,
    .body = Body,
    .examples = {"(T[3,5], T[5,7], T[7]) {activation=\"Relu\"}",
                 "(T[3,5], T[7,5]) {activation=\"LeakyRelu\", activation_alpha=0.25, transB=1}"},
};

}  // namespace mge::op_fused_gemm
