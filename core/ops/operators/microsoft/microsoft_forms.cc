// SPDX-License-Identifier: Apache-2.0
// Operators of com.microsoft that ONNX has too, in another form.
#include "core/ops/function_body.h"

namespace mge::op_microsoft_forms {
namespace {

absl::StatusOr<bool> DequantizeLinearBody(FunctionBody& f) {
  f.Result(0, "DequantizeLinear", {f.input(0), f.input(1), f.input(2)}, f.Only({"axis"}));
  return true;
}

absl::StatusOr<bool> QuantizeLinearBody(FunctionBody& f) {
  f.Result(0, "QuantizeLinear", {f.input(0), f.input(1), f.input(2)}, f.Only({"axis"}));
  return true;
}

absl::StatusOr<bool> GeluBody(FunctionBody& f) {
  f.Result(0, "Gelu", {f.input(0)});
  return true;
}

absl::StatusOr<bool> GridSampleBody(FunctionBody& f) {
  Attributes attrs = f.attrs();
  const std::string mode = attrs.Text("mode");
  attrs.Set("mode", std::string(mode == "bilinear" ? "linear" : mode == "bicubic" ? "cubic" : mode));
  f.Result(0, "GridSample", {f.input(0), f.input(1)}, std::move(attrs));
  return true;
}

// Pads may be a matrix of one row.
absl::StatusOr<bool> PadBody(FunctionBody& f) {
  f.Result(0, "Pad", {f.input(0), f.Reshape(f.input(1), {-1}), f.input(2)}, f.attrs());
  return true;
}

absl::StatusOr<bool> RangeBody(FunctionBody& f) {
  const auto scalar = [&](ValueId v) { return f.Reshape(v, {}); };
  f.Result(0, "Range",
           {scalar(f.input(0)), scalar(f.input(1)), f.has_input(2) ? scalar(f.input(2)) : f.Number(f.dtype(0), 1)});
  return true;
}

absl::StatusOr<bool> TriluBody(FunctionBody& f) {
  f.Result(0, "Trilu", {f.input(0), f.input(1)}, f.attrs());
  return true;
}

// The order is that of the first elements with each value.
absl::StatusOr<bool> UniqueBody(FunctionBody& f) {
  std::vector<ValueId> outputs = {f.output(0), kNone, f.output(1), f.output(2)};
  while (outputs.back() == kNone) outputs.pop_back();
  f.AddTo(std::move(outputs), "Unique", {f.input(0)}, IntAttribute("sorted", 0));
  return true;
}

absl::StatusOr<bool> ExpandDimsBody(FunctionBody& f) {
  const ValueId axis = f.Add("Cast", {f.Reshape(f.input(1), {1})}, CastTo(DType::kI64));
  f.Result(0, "Unsqueeze", {f.input(0), axis});
  return true;
}

absl::StatusOr<bool> CausalConvWithStateBody(FunctionBody& f) {
  if (f.attrs().Int("ndim") != 1) return f.Unsupported("the attribute ndim other than 1");
  if (f.attrs().Int("state_window") != 0) return f.Unsupported("the attribute state_window");
  std::vector<ValueId> outputs = {f.output(0), f.output(1)};
  f.AddTo(std::move(outputs), "CausalConvWithState", {f.input(0), f.input(1), f.input(2), f.input(3)},
          f.Only({"activation"}));
  return true;
}

constexpr OpDef kRows[] = {
    MicrosoftFunction(
        {.name = "DequantizeLinear",
         .doc = "(x - zero point) * scale, as in ONNX.",
         .inputs = {{"x", {DType::kU8, DType::kI8, DType::kU16, DType::kI16, DType::kI32}},
                    {"x_scale", kFloating},
                    {"x_zero_point", {DType::kU8, DType::kI8, DType::kU16, DType::kI16, DType::kI32}, Arity::kOptional}},
         .outputs = {{"y"}},
         .attrs = {AxisOf({"axis", 1, "the axis"})},
         .body = DequantizeLinearBody,
         .examples = {"(T[3,5], float32[]<0.05>, T[]<3>)", "(T[3,2], float32[2]<0.05,0.1>, T[2]<3,4>) {axis=1}"}}),
    MicrosoftFunction({.name = "QuantizeLinear",
                       .doc = "x / scale + zero point, rounded to integers, as in ONNX.",
                       .inputs = {{"x", kFloating},
                                  {"y_scale", kFloating},
                                  {"y_zero_point", {DType::kU8, DType::kI8, DType::kU16, DType::kI16}, Arity::kOptional}},
                       .outputs = {{"y"}},
                       .attrs = {AxisOf({"axis", 1, "the axis"})},
                       .body = QuantizeLinearBody,
                       .examples = {"(T[3,5], T[]<0.05>, uint16[]<3>)", "(T[3,2], T[2]<0.05,0.1>, int8[2]<3,4>) {axis=1}"}}),
    MicrosoftFunction({.name = "Gelu",
                       .doc = "x times the Gaussian distribution function of x.",
                       .inputs = {{"X", kFloating}},
                       .body = GeluBody,
                       .examples = {"(T[3,37])"}}),
    MicrosoftFunction(
        {.name = "GridSample",
         .doc = "Samples an image at the points of a grid, as in ONNX.",
         .inputs = {{"X", kFloating}, {"Grid", kFloating}},
         .attrs = {{"align_corners", 0, "not 0: -1 and 1 are the centers of the corners, else their edges"},
                   {"mode", "bilinear", "bilinear, nearest or bicubic"},
                   {"padding_mode", "zeros", "zeros, border or reflection"}},
         .body = GridSampleBody,
         .examples = {"(T[1,2,4,5], T[1,3,3,2])", "(T[1,2,4,5], T[1,3,3,2]) {mode=\"nearest\", align_corners=1}"}}),
    MicrosoftFunction({.name = "Pad",
                       .doc = "Pads a tensor, as in ONNX.",
                       .inputs = {{"data", kFloating}, {"pads", {DType::kI64}}, {"value", kFloating, Arity::kOptional}},
                       .outputs = {{"output"}},
                       .attrs = {{"mode", "constant", "constant, reflect or edge"}},
                       .body = PadBody,
                       .examples = {"(T[3,4], int64[4]<0,1,2,0>)", "(T[3,4], int64[1,4]<0,1,2,0>) {mode=\"edge\"}"}}),
    MicrosoftFunction(
        {.name = "CausalConvWithState",
         .doc = "Causal convolution of each channel with its own taps, as in ONNX.",
         .inputs = {{"input", kFloating},
                    {"weight", kFloating},
                    {"bias", kFloating, Arity::kOptional},
                    {"past_state", kFloating, Arity::kOptional}},
         .outputs = {{"output"}, {"present_state", kAnyType, Arity::kOptional}},
         .attrs = {{"activation", "none", "of the result: none, silu or swish"},
                   {"ndim", 1, "must be 1"},
                   {"state_window", 0, "must be 0"}},
         .body = CausalConvWithStateBody,
         .examples = {"(T[2,3,7], T[3,1,4], T[3], T[2,3,3]) -> 2", "(T[1,5,2], T[5,1,4]) {activation=\"silu\"} -> 2"}}),
    MicrosoftFunction({.name = "Range",
                       .doc = "The numbers from start on, below limit, with a step of delta.",
                       .inputs = {{"start", kNumeric}, {"limit", kNumeric}, {"delta", kNumeric, Arity::kOptional}},
                       .body = RangeBody,
                       .traits = kDynamicShape | kNoFold,
                       .examples = {"(T[]<1>, T[]<9>, T[]<2>)", "(T[]<1>, T[]<9>)"}}),
    MicrosoftFunction({.name = "Trilu",
                       .doc = "The upper or lower triangle of matrices, as in ONNX.",
                       .inputs = {{"X"}, {"k", {DType::kI64}, Arity::kOptional}},
                       .attrs = {{"upper", 1, "not 0: keeps the upper triangle"}},
                       .body = TriluBody,
                       .examples = {"(T[2,3,4], int64[]<1>)", "(T[3,4]) {upper=0}"}}),
    MicrosoftFunction(
        {.name = "Unique",
         .doc = "The different elements of a vector, with the index of each element among them and their numbers.",
         .inputs = {{"x"}},
         .outputs = {{"y"}, {"idx", kAnyType, Arity::kOptional}, {"counts", kAnyType, Arity::kOptional}},
         .body = UniqueBody,
         .traits = kHostOnly | kDynamicShape}),
    MicrosoftFunction({.name = "ExpandDims",
                       .doc = "Inserts a dimension of size 1.",
                       .inputs = {{"X"}, {"axis", {DType::kI32}}},
                       .body = ExpandDimsBody,
                       .examples = {"(T[3,4], int32[]<1>)"}}),
};

}  // namespace

MGE_OPS(microsoft_forms) = kRows;

}  // namespace mge::op_microsoft_forms
