// SPDX-License-Identifier: Apache-2.0
#include "core/ops/families/fused_quantized.h"

namespace mge::op_q_linear_add {
namespace {

absl::StatusOr<bool> Body(FunctionBody& f) { return QuantizedBinary(f, "Add"); }

}  // namespace

MGE_OP(q_linear_add) = {
    .name = "QLinearAdd",
    .domain = "com.microsoft",
    .doc = "A + B of quantized tensors.",
    .inputs = kQuantizedBinaryInputs,
    .outputs = {{"C"}},
    .infer = InferByBody,
    .eval = EvalByBody,
    .body = Body,
    .examples = {"(T[2,3,5], float32[]<0.05>, T[]<3>, T[5], float32[]<0.1>, T[]<7>, float32[]<0.2>, T[]<1>)",
                 "(T[2,3], float32[1]<0.05>, _, T[2,3], float32[]<0.1>, _, float32[]<0.2>)"},
};

}  // namespace mge::op_q_linear_add
