// SPDX-License-Identifier: Apache-2.0
#include "core/ops/families/fused_quantized.h"

namespace mge::op_q_linear_reduce_mean {
namespace {

absl::StatusOr<bool> Body(FunctionBody& f) {
  const ValueId y =
      f.Add("ReduceMean", {Dequantized(f, 0, 1, 2), f.Integers(f.attrs().IntList("axes"))}, f.Only({"keepdims"}));
  Quantized(f, y, 3, 4, f.dtype(0));
  return true;
}

}  // namespace

MGE_OP(q_linear_reduce_mean) = {
    .name = "QLinearReduceMean",
    .domain = "com.microsoft",
    .doc = "ReduceMean of a quantized tensor.",
    .inputs = kQuantizedUnaryInputs,
    .outputs = {{"Y"}},
    .attrs = {AxisOf({"axes", AttrType::kInts, Presence::kRequired, "the axes"}),
              {"keepdims", AttrType::kInt, Presence::kRequired, "not 0: reduced axes stay with size 1"}},
    .infer = InferByBody,
    .eval = EvalByBody,
    .body = Body,
    .examples = {"(T[2,3,5], float32[]<0.05>, T[]<3>, float32[]<0.04>, T[]<2>) {axes=[1], keepdims=1}"},
};

}  // namespace mge::op_q_linear_reduce_mean
