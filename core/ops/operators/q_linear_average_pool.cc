// SPDX-License-Identifier: Apache-2.0
#include "core/ops/families/fused_quantized.h"
#include "core/ops/families/window.h"

namespace mge::op_q_linear_average_pool {
namespace {

absl::StatusOr<bool> Body(FunctionBody& f) {
  return QuantizedPool(f, "AveragePool",
                       f.Only({"auto_pad", "ceil_mode", "count_include_pad", "kernel_shape", "pads", "strides"}));
}

}  // namespace

MGE_OP(q_linear_average_pool) = {
    .name = "QLinearAveragePool",
    .domain = "com.microsoft",
    .doc = "AveragePool of a quantized tensor.",
    .inputs = kQuantizedUnaryInputs,
    .outputs = {{"Y"}},
    .attrs = {kAutoPadAttr,
              kCeilModeAttr,
              {"channels_last", 0, "not 0: the channels are the last axis"},
              {"count_include_pad", 0, "not 0: the mean counts padding"},
              kWindowShapeAttr,
              kPadsAttr,
              kStridesAttr},
    .infer = InferByBody,
    .eval = EvalByBody,
    .normalize = NormalizeAnyWindow<>,
    .body = Body,
    .examples = {"(T[2,3,5,4], float32[]<0.05>, T[]<3>, float32[]<0.04>, T[]<2>) {kernel_shape=[2,2], strides=[2,2]}",
                 "(T[2,5,4,3], float32[]<0.05>, T[]<3>, float32[]<0.04>, T[]<2>) {channels_last=1, kernel_shape=[3,3]}"},
};

}  // namespace mge::op_q_linear_average_pool
