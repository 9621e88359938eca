// SPDX-License-Identifier: Apache-2.0
#include "core/ops/function_body.h"

namespace mge::op_bias_softmax {
namespace {

// The dimensions from the axis on form one row. The bias lacks a part of the dimensions before it.
absl::StatusOr<bool> Body(FunctionBody& f) {
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

}  // namespace

MGE_OP(bias_softmax) = {
    .name = "BiasSoftmax",
    .domain = "com.microsoft",
    .doc = "The softmax of data + bias over all dimensions from an axis on.",
    .inputs = {{"data", kFloating}, {"bias", kFloating}},
    .outputs = {{"output"}},
    .attrs = {AxisOf({"axis", 1, "the axis"}),
              {"is_inner_broadcast", AttrType::kInt, Presence::kRequired, "not 0: B repeats along the inner axes"}},
    .infer = InferByBody,
    .eval = EvalByBody,
    .body = Body,
    .examples = {"(T[2,3,4,5], T[2,1,1,5]) {axis=3, is_inner_broadcast=1}",
                 "(T[2,3,4,5], T[4,5]) {axis=3, is_inner_broadcast=0}"},
};

}  // namespace mge::op_bias_softmax
