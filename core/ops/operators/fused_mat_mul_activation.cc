// SPDX-License-Identifier: Apache-2.0
#include "core/ops/families/activation.h"

namespace mge::op_fused_mat_mul_activation {
namespace {

absl::StatusOr<bool> Body(FunctionBody& f) {
  const ValueId product = f.AddMicrosoft("FusedMatMul", {f.input(0), f.input(1)},
                                         f.Only({"alpha", "transA", "transB", "transBatchA", "transBatchB"}));
  MGE_RETURN_IF_ERROR(AddActivation(f, product, f.dtype(0), f.attrs().Text("activation"), ActivationParameters(f.attrs())));
  return true;
}

}  // namespace

MGE_OP(fused_mat_mul_activation) = {
    .name = "FusedMatMulActivation",
    .domain = "com.microsoft",
    .doc = "An activation of alpha * A B, with operands that may be transposed.",
    .inputs = {{"A", kFloating}, {"B", kFloating}},
    .outputs = {{"Y"}},
    .attrs = {{"activation", AttrType::kText, true},
              {"activation_alpha", AttrType::kFloat},
              {"activation_axis", AttrType::kInt},
              {"activation_beta", AttrType::kFloat},
              {"activation_gamma", AttrType::kFloat},
              {"alpha", AttrType::kFloat},
              {"transA", AttrType::kInt},
              {"transB", AttrType::kInt},
              {"transBatchA", AttrType::kInt},
              {"transBatchB", AttrType::kInt}},
    .infer = InferByBody,
    .eval = EvalByBody,
    .body = Body,
    .examples = {"(T[3,5], T[5,7]) {activation=\"Relu\"}", "(T[5,3], T[5,7]) {activation=\"Tanh\", transA=1}"},
};

}  // namespace mge::op_fused_mat_mul_activation
