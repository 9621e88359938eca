// SPDX-License-Identifier: Apache-2.0
// Activations of com.microsoft, with a bias.
#include "core/ops/function_body.h"

namespace mge::op_gelu_functions {
namespace {

absl::StatusOr<bool> BiasAddBody(FunctionBody& f) {
  f.Result(0, "Add", {f.Add("Add", {f.input(0), f.input(1)}), f.input(2)});
  return true;
}

absl::StatusOr<bool> BiasGeluBody(FunctionBody& f) {
  f.Result(0, "Gelu", {f.Add("Add", {f.input(0), f.input(1)})});
  return true;
}

// The dimensions from the axis on form one row. The bias lacks a part of the dimensions before it.
absl::StatusOr<bool> BiasSoftmaxBody(FunctionBody& f) {
  if (!f.IsStatic()) return false;
  const Shape x = f.dims(0);
  MGE_ASSIGN_OR_RETURN(const int64_t axis, NormalizeAxis(f.attrs().Int("axis"), f.rank(0)));
  int64_t row = 1;
  for (size_t d = static_cast<size_t>(axis); d < x.size(); ++d) row *= x[d];
  const int64_t rows = row == 0 ? 0 : Elements(x) / row, biases = row == 0 ? 0 : Elements(f.dims(1)) / row;
  if (biases == 0 || rows % biases != 0 || Elements(f.dims(1)) % row != 0)
    return f.Invalid("the bias does not fit the data");
  const int64_t repeats = rows / biases;
  const bool inner = f.attrs().Int("is_inner_broadcast") != 0;
  const Shape data = inner ? Shape{biases, repeats, row} : Shape{repeats, biases, row};
  const Shape bias = inner ? Shape{biases, 1, row} : Shape{1, biases, row};
  const ValueId sum = f.Add("Add", {f.Reshape(f.input(0), data), f.Reshape(f.input(1), bias)});
  f.ReshapeTo(f.output(0), f.Add("Softmax", {sum}, IntAttribute("axis", -1)), x);
  return true;
}

absl::StatusOr<bool> BiasSplitGeluBody(FunctionBody& f) {
  Attributes attrs = IntAttribute("axis", -1);
  attrs.Set("num_outputs", int64_t{2});
  const std::vector<ValueId> halves = f.Add("Split", {f.Add("Add", {f.input(0), f.input(1)})}, 2, std::move(attrs));
  f.Result(0, "Mul", {halves[0], f.Add("Gelu", {halves[1]})});
  return true;
}

absl::StatusOr<bool> FastGeluBody(FunctionBody& f) {
  f.Result(0, "Gelu", {f.Plus(f.input(0), f.input(1))}, OneAttribute("approximate", std::string("tanh")));
  return true;
}

absl::StatusOr<bool> QuickGeluBody(FunctionBody& f) {
  f.Result(0, "Swish", {f.input(0)}, OneAttribute("alpha", f.attrs().Float("alpha")));
  return true;
}

constexpr OpDef kRows[] = {
    MicrosoftFunction({.name = "BiasAdd",
                       .doc = "X + bias + skip.",
                       .inputs = {{"X", kFloating}, {"bias", kFloating}, {"skip", kFloating}},
                       .body = BiasAddBody,
                       .examples = {"(T[2,3,37], T[37], T[2,3,37])"}}),
    MicrosoftFunction({.name = "BiasGelu",
                       .doc = "Gelu of A + B.",
                       .inputs = {{"A", kFloating}, {"B", kFloating}},
                       .outputs = {{"C"}},
                       .body = BiasGeluBody,
                       .examples = {"(T[2,3,37], T[37])"}}),
    MicrosoftFunction(
        {.name = "BiasSoftmax",
         .doc = "The softmax of data + bias over all dimensions from an axis on.",
         .inputs = {{"data", kFloating}, {"bias", kFloating}},
         .outputs = {{"output"}},
         .attrs = {AxisOf({"axis", 1, "the axis"}),
                   {"is_inner_broadcast", AttrType::kInt, Presence::kRequired, "not 0: B repeats along the inner axes"}},
         .body = BiasSoftmaxBody,
         .examples = {"(T[2,3,4,5], T[2,1,1,5]) {axis=3, is_inner_broadcast=1}",
                      "(T[2,3,4,5], T[4,5]) {axis=3, is_inner_broadcast=0}"}}),
    MicrosoftFunction({.name = "BiasSplitGelu",
                       .doc = "The product of the left half of X + bias and the Gelu of the right half.",
                       .inputs = {{"X", kFloating}, {"bias", kFloating}},
                       .body = BiasSplitGeluBody,
                       .examples = {"(T[2,3,38], T[38])"}}),
    MicrosoftFunction({.name = "FastGelu",
                       .doc = "Gelu of X + bias, approximated with tanh.",
                       .inputs = {{"X", kFloating}, {"bias", kFloating, Arity::kOptional}},
                       .body = FastGeluBody,
                       .examples = {"(T[2,3,37], T[37])", "(T[3,37])"}}),
    MicrosoftFunction({.name = "QuickGelu",
                       .doc = "X * sigmoid(alpha * X).",
                       .inputs = {{"X", kFloating}},
                       .attrs = {{"alpha", 1.702f, "the factor inside the sigmoid"}},
                       .body = QuickGeluBody,
                       .examples = {"(T[3,37])", "(T[3,37]) {alpha=1.0}"}}),
};

}  // namespace

MGE_OPS(gelu_functions) = kRows;

}  // namespace mge::op_gelu_functions
