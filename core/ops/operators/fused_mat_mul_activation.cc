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
    .attrs = {{"activation", AttrType::kText, Presence::kRequired,
               "the activation: Relu, Tanh, Sigmoid, LeakyRelu or HardSigmoid"},
              {"activation_alpha", AttrType::kFloat, Presence::kOptional, "absent: the default of the activation"},
              {"activation_axis", -1, "the axis of Softmax"},
              {"activation_beta", AttrType::kFloat, Presence::kOptional, "absent: the default of the activation"},
              {"activation_gamma", AttrType::kFloat, Presence::kOptional, "absent: the default of the activation"},
              {"alpha", 1.0f, "the factor"},
              {"transA", 0, "not 0: A is transposed"},
              {"transB", 0, "not 0: B is transposed"},
              {"transBatchA", 0, "not 0: the batch is A's second to last axis"},
              {"transBatchB", 0, "not 0: the batch is B's second to last axis"}},
    .infer = InferByBody,
    .eval = EvalByBody,
    .body = Body,
    .examples = {"(T[3,5], T[5,7]) {activation=\"Relu\"}", "(T[5,3], T[5,7]) {activation=\"Tanh\", transA=1}"},
};

}  // namespace mge::op_fused_mat_mul_activation
