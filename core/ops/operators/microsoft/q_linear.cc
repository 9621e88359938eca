// SPDX-License-Identifier: Apache-2.0
// Operators of com.microsoft that compute with quantized tensors: an operator of floats between DequantizeLinear and
// QuantizeLinear. Rewrites replace some by products of integers.
#include "core/ops/families/fused_quantized.h"
#include "core/ops/families/window.h"
#include "core/ops/function_body.h"

namespace mge::op_q_linear {
namespace {

// The inputs from 2 on are triples of a tensor, its scale and its zero point.
absl::StatusOr<bool> QLinearConcatBody(FunctionBody& f) {
  std::vector<ValueId> parts;
  if (f.input_count() < 5 || (f.input_count() - 2) % 3 != 0)
    return f.Invalid("inputs must be tensors, scales and zero points");
  for (int i = 2; i < f.input_count(); i += 3) parts.push_back(Dequantized(f, i, i + 1, i + 2));
  Quantized(f, f.Add("Concat", std::move(parts), f.Only({"axis"})), 0, 1, f.dtype(1));
  return true;
}

absl::StatusOr<bool> QLinearReduceMeanBody(FunctionBody& f) {
  const ValueId y =
      f.Add("ReduceMean", {Dequantized(f, 0, 1, 2), f.Integers(f.attrs().IntList("axes"))}, f.Only({"keepdims"}));
  Quantized(f, y, 3, 4, f.dtype(0));
  return true;
}

// Before operator set 13, all dimensions from the axis on form one row.
absl::StatusOr<bool> QLinearSoftmaxBody(FunctionBody& f) {
  const int version = f.attrs().Int("opset") < 13 ? 11 : 13;
  return QuantizedUnary(f, "Softmax", IntAttribute("axis", f.attrs().Int("axis")), version);
}

absl::StatusOr<bool> QLinearWhereBody(FunctionBody& f) {
  Quantized(f, f.Add("Where", {f.input(0), Dequantized(f, 1, 2, 3), Dequantized(f, 4, 5, 6)}), 7, 8, f.dtype(1));
  return true;
}

constexpr OpDef kRows[] = {
    MicrosoftFunction(
        {.name = "QLinearAdd",
         .doc = "A + B of quantized tensors.",
         .inputs = kQuantizedBinaryInputs,
         .outputs = {{"C"}},
         .body = [](FunctionBody& f) { return QuantizedBinary(f, "Add"); },
         .examples = {"(T[2,3,5], float32[]<0.05>, T[]<3>, T[5], float32[]<0.1>, T[]<7>, float32[]<0.2>, T[]<1>)",
                      "(T[2,3], float32[1]<0.05>, _, T[2,3], float32[]<0.1>, _, float32[]<0.2>)"}}),
    MicrosoftFunction(
        {.name = "QLinearAveragePool",
         .doc = "AveragePool of a quantized tensor.",
         .inputs = kQuantizedUnaryInputs,
         .attrs = {kAutoPadAttr,
                   kCeilModeAttr,
                   {"channels_last", 0, "not 0: the channels are the last axis"},
                   {"count_include_pad", 0, "not 0: the mean counts padding"},
                   kWindowShapeAttr,
                   kPadsAttr,
                   kStridesAttr},
         .normalize = NormalizeAnyWindow<>,
         .body =
             [](FunctionBody& f) {
               return QuantizedPool(
                   f, "AveragePool",
                   f.Only({"auto_pad", "ceil_mode", "count_include_pad", "kernel_shape", "pads", "strides"}));
             },
         .examples =
             {"(T[2,3,5,4], float32[]<0.05>, T[]<3>, float32[]<0.04>, T[]<2>) {kernel_shape=[2,2], strides=[2,2]}",
              "(T[2,5,4,3], float32[]<0.05>, T[]<3>, float32[]<0.04>, T[]<2>) {channels_last=1, kernel_shape=[3,3]}"}}),
    MicrosoftFunction(
        {.name = "QLinearConcat",
         .doc = "Concat of quantized tensors.",
         .inputs = {{"Y_scale", kFloat32},
                    {"Y_zero_point", kQuantized8},
                    {"inputs", kQuantized8 | kFloat32, Arity::kVariadic}},
         .attrs = {AxisOf({"axis", AttrType::kInt, Presence::kRequired, "the axis"}, 2)},
         .body = QLinearConcatBody,
         .examples =
             {"(float32[]<0.1>, uint8[]<3>, uint8[2,3], float32[]<0.1>, uint8[]<3>, uint8[2,4], float32[]<0.2>, uint8[]<5>) "
              "{axis=1}"}}),
    MicrosoftFunction({.name = "QLinearGlobalAveragePool",
                       .doc = "GlobalAveragePool of a quantized tensor.",
                       .inputs = kQuantizedUnaryInputs,
                       .attrs = {{"channels_last", 0, "not 0: the channels are the last axis"}},
                       .body = [](FunctionBody& f) { return QuantizedPool(f, "GlobalAveragePool", {}); },
                       .examples = {"(T[2,3,5,4], float32[]<0.05>, T[]<3>, float32[]<0.04>, T[]<2>)",
                                    "(T[2,5,4,3], float32[]<0.05>, T[]<3>, float32[]<0.04>, T[]<2>) {channels_last=1}"}}),
    MicrosoftFunction({.name = "QLinearLeakyRelu",
                       .doc = "LeakyRelu of a quantized tensor.",
                       .inputs = kQuantizedUnaryInputs,
                       .attrs = {{"alpha", 0.01f, "the slope below 0"}},
                       .body = [](FunctionBody& f) { return QuantizedUnary(f, "LeakyRelu", f.Only({"alpha"})); },
                       .examples = {"(T[3,37], float32[]<0.05>, T[]<3>, float32[]<0.05>, T[]<2>) {alpha=0.1}"}}),
    MicrosoftFunction(
        {.name = "QLinearMul",
         .doc = "A * B of quantized tensors.",
         .inputs = kQuantizedBinaryInputs,
         .outputs = {{"C"}},
         .body = [](FunctionBody& f) { return QuantizedBinary(f, "Mul"); },
         .examples = {"(T[2,3,5], float32[]<0.05>, T[]<3>, T[5], float32[]<0.1>, T[]<7>, float32[]<0.2>, T[]<1>)",
                      "(T[2,3], float32[1]<0.05>, _, T[2,3], float32[]<0.1>, _, float32[]<0.2>)"}}),
    MicrosoftFunction({.name = "QLinearReduceMean",
                       .doc = "ReduceMean of a quantized tensor.",
                       .inputs = kQuantizedUnaryInputs,
                       .attrs = {AxisOf({"axes", AttrType::kInts, Presence::kRequired, "the axes"}),
                                 {"keepdims", AttrType::kInt, Presence::kRequired, "not 0: reduced axes stay with size 1"}},
                       .body = QLinearReduceMeanBody,
                       .examples = {"(T[2,3,5], float32[]<0.05>, T[]<3>, float32[]<0.04>, T[]<2>) {axes=[1], keepdims=1}"}}),
    MicrosoftFunction({.name = "QLinearSigmoid",
                       .doc = "Sigmoid of a quantized tensor.",
                       .inputs = kQuantizedUnaryInputs,
                       .body = [](FunctionBody& f) { return QuantizedUnary(f, "Sigmoid"); },
                       .examples = {"(T[3,37], float32[]<0.05>, T[]<3>, float32[]<0.004>, T[]<0>)"}}),
    MicrosoftFunction({.name = "QLinearSoftmax",
                       .doc = "Softmax of a quantized tensor, as the operator set defines it.",
                       .inputs = kQuantizedUnaryInputs,
                       .attrs = {AxisOf({"axis", -1, "the axis"}),
                                 {"opset", AttrType::kInt, Presence::kRequired, "the operator set of Softmax"}},
                       .body = QLinearSoftmaxBody,
                       .examples = {"(T[2,3,5], float32[]<0.05>, T[]<3>, float32[]<0.004>, T[]<0>) {opset=13}",
                                    "(T[2,3,5], float32[]<0.05>, T[]<3>, float32[]<0.004>, T[]<0>) {opset=12, axis=1}"}}),
    MicrosoftFunction(
        {.name = "QLinearWhere",
         .doc = "X where the condition is true, else Y, of quantized tensors.",
         .inputs = {{"condition", {DType::kBool}},
                    {"X", kQuantized8},
                    {"x_scale", kFloat32},
                    {"x_zero_point", kQuantized8},
                    {"Y", kQuantized8},
                    {"y_scale", kFloat32},
                    {"y_zero_point", kQuantized8},
                    {"z_scale", kFloat32},
                    {"z_zero_point", kQuantized8}},
         .outputs = {{"Z"}},
         .body = QLinearWhereBody,
         .examples = {"(bool[5]<true,false,true,true,false>, T[3,5], float32[]<0.05>, T[]<3>, T[5], float32[]<0.1>, T[]<7>, "
                      "float32[]<0.2>, T[]<1>)"}}),
};

}  // namespace

MGE_OPS(q_linear) = kRows;

}  // namespace mge::op_q_linear
