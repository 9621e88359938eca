// SPDX-License-Identifier: Apache-2.0
#include "core/ops/families/fused_quantized.h"

namespace mge::op_q_linear_leaky_relu {
namespace {

absl::StatusOr<bool> Body(FunctionBody& f) { return QuantizedUnary(f, "LeakyRelu", f.Only({"alpha"})); }

}  // namespace

MGE_OP(q_linear_leaky_relu) = {
    .name = "QLinearLeakyRelu",
    .domain = "com.microsoft",
    .doc = "LeakyRelu of a quantized tensor.",
    .inputs = kQuantizedUnaryInputs,
    .outputs = {{"Y"}},
    .attrs = {{"alpha", 0.01f, "the slope below 0"}},
    .infer = InferByBody,
    .eval = EvalByBody,
    .body = Body,
    .examples = {"(T[3,37], float32[]<0.05>, T[]<3>, float32[]<0.05>, T[]<2>) {alpha=0.1}"},
};

}  // namespace mge::op_q_linear_leaky_relu
