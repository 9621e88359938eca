// SPDX-License-Identifier: Apache-2.0
#include "core/ops/function_body.h"

namespace mge::op_bias_split_gelu {
namespace {

absl::StatusOr<bool> Body(FunctionBody& f) {
  Attributes attrs = IntAttribute("axis", -1);
  attrs.Set("num_outputs", int64_t{2});
  const std::vector<ValueId> halves = f.Add("Split", {f.Add("Add", {f.input(0), f.input(1)})}, 2, std::move(attrs));
  f.Result(0, "Mul", {halves[0], f.Add("Gelu", {halves[1]})});
  return true;
}

}  // namespace

MGE_OP(bias_split_gelu) = {
    .name = "BiasSplitGelu",
    .domain = "com.microsoft",
    .doc = "The product of the left half of X + bias and the Gelu of the right half.",
    .inputs = {{"X", kFloating}, {"bias", kFloating}},
    .outputs = {{"Y"}},
    .infer = InferByBody,
    .eval = EvalByBody,
    .body = Body,
    .examples = {"(T[2,3,38], T[38])"},
};

}  // namespace mge::op_bias_split_gelu
