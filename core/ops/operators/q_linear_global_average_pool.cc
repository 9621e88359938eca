// SPDX-License-Identifier: Apache-2.0
#include "core/ops/families/fused_quantized.h"

namespace mge::op_q_linear_global_average_pool {
namespace {

absl::StatusOr<bool> Body(FunctionBody& f) { return QuantizedPool(f, "GlobalAveragePool", {}); }

}  // namespace

MGE_OP(q_linear_global_average_pool) = {
    .name = "QLinearGlobalAveragePool",
    .domain = "com.microsoft",
    .doc = "GlobalAveragePool of a quantized tensor.",
    .inputs = kQuantizedUnaryInputs,
    .outputs = {{"Y"}},
    .attrs = {{"channels_last", 0, "not 0: the channels are the last axis"}},
    .infer = InferByBody,
    .eval = EvalByBody,
    .body = Body,
    .examples = {"(T[2,3,5,4], float32[]<0.05>, T[]<3>, float32[]<0.04>, T[]<2>)",
                 "(T[2,5,4,3], float32[]<0.05>, T[]<3>, float32[]<0.04>, T[]<2>) {channels_last=1}"},
};

}  // namespace mge::op_q_linear_global_average_pool
