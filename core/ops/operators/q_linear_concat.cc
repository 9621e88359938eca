// SPDX-License-Identifier: Apache-2.0
#include "core/ops/families/fused_quantized.h"

namespace mge::op_q_linear_concat {
namespace {

// The inputs from 2 on are triples of a tensor, its scale and its zero point.
absl::StatusOr<bool> Body(FunctionBody& f) {
  std::vector<ValueId> parts;
  if (f.input_count() < 5 || (f.input_count() - 2) % 3 != 0)
    return f.Invalid("inputs must be tensors, scales and zero points");
  for (int i = 2; i < f.input_count(); i += 3) parts.push_back(Dequantized(f, i, i + 1, i + 2));
  Quantized(f, f.Add("Concat", std::move(parts), f.Only({"axis"})), 0, 1, f.dtype(1));
  return true;
}

}  // namespace

MGE_OP(q_linear_concat) = {
    .name = "QLinearConcat",
    .domain = "com.microsoft",
    .doc = "Concat of quantized tensors.",
    .inputs = {{"Y_scale", kFloat32}, {"Y_zero_point", kQuantized8}, {"inputs", kQuantized8 | kFloat32, Arity::kVariadic}},
    .outputs = {{"Y"}},
    .attrs = {AxisOf({"axis", AttrType::kInt, Presence::kRequired, "the axis"}, 2)},
    .infer = InferByBody,
    .eval = EvalByBody,
    .body = Body,
    .examples =
        {"(float32[]<0.1>, uint8[]<3>, uint8[2,3], float32[]<0.1>, uint8[]<3>, uint8[2,4], float32[]<0.2>, uint8[]<5>) "
         "{axis=1}"},
};

}  // namespace mge::op_q_linear_concat
