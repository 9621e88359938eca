// SPDX-License-Identifier: Apache-2.0
#include "core/ops/families/fused_quantized.h"

namespace mge::op_q_linear_sigmoid {
namespace {

absl::StatusOr<bool> Body(FunctionBody& f) { return QuantizedUnary(f, "Sigmoid"); }

}  // namespace

MGE_OP(q_linear_sigmoid) = {
    .name = "QLinearSigmoid",
    .domain = "com.microsoft",
    .doc = "Sigmoid of a quantized tensor.",
    .inputs = kQuantizedUnaryInputs,
    .outputs = {{"Y"}},
    .infer = InferByBody,
    .eval = EvalByBody,
    .body = Body,
    .examples = {"(T[3,37], float32[]<0.05>, T[]<3>, float32[]<0.004>, T[]<0>)"},
};

}  // namespace mge::op_q_linear_sigmoid
