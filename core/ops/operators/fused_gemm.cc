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
    .attrs = {{"activation", AttrType::kText, Presence::kOptional, "the activation: Relu, Sigmoid, ...; absent: none"},
              {"activation_alpha", AttrType::kFloat, Presence::kOptional, "absent: the default of the activation"},
              {"activation_beta", AttrType::kFloat, Presence::kOptional, "absent: the default of the activation"},
              {"activation_gamma", AttrType::kFloat, Presence::kOptional, "absent: the default of the activation"},
              {"alpha", 1.0f, "the factor of the product"},
              {"beta", 1.0f, "the factor of C"},
              {"transA", 0, "not 0: A is transposed"},
              {"transB", 0, "not 0: B is transposed"}},
    .infer = InferByBody,
    .eval = EvalByBody,
    .body = Body,
    .examples = {"(T[3,5], T[5,7], T[7]) {activation=\"Relu\"}",
                 "(T[3,5], T[7,5]) {activation=\"LeakyRelu\", activation_alpha=0.25, transB=1}"},
};

}  // namespace mge::op_fused_gemm
