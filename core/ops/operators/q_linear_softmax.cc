// SPDX-License-Identifier: Apache-2.0
#include "core/ops/families/fused_quantized.h"

namespace mge::op_q_linear_softmax {
namespace {

// Before operator set 13, all dimensions from the axis on form one row.
absl::StatusOr<bool> Body(FunctionBody& f) {
  const int version = f.attrs().Int("opset") < 13 ? 11 : 13;
  return QuantizedUnary(f, "Softmax", IntAttribute("axis", f.attrs().Int("axis")), version);
}

}  // namespace

MGE_OP(q_linear_softmax) = {
    .name = "QLinearSoftmax",
    .domain = "com.microsoft",
    .doc = "Softmax of a quantized tensor, as the operator set defines it.",
    .inputs = kQuantizedUnaryInputs,
    .outputs = {{"Y"}},
    .attrs = {AxisOf({"axis", -1, "the axis"}),
              {"opset", AttrType::kInt, Presence::kRequired, "the operator set of Softmax"}},
    .infer = InferByBody,
    .eval = EvalByBody,
    .body = Body,
    .examples = {"(T[2,3,5], float32[]<0.05>, T[]<3>, float32[]<0.004>, T[]<0>) {opset=13}",
                 "(T[2,3,5], float32[]<0.05>, T[]<3>, float32[]<0.004>, T[]<0>) {opset=12, axis=1}"},
};

}  // namespace mge::op_q_linear_softmax
