// SPDX-License-Identifier: Apache-2.0
#include "core/ops/function_body.h"

namespace mge::op_microsoft_unique {
namespace {

// The order is that of the first elements with each value.
absl::StatusOr<bool> Body(FunctionBody& f) {
  std::vector<ValueId> outputs = {f.output(0), kNone, f.output(1), f.output(2)};
  while (outputs.back() == kNone) outputs.pop_back();
  f.AddTo(std::move(outputs), "Unique", {f.input(0)}, IntAttribute("sorted", 0));
  return true;
}

}  // namespace

MGE_OP(microsoft_unique) = {
    .name = "Unique",
    .domain = "com.microsoft",
    .doc = "The different elements of a vector, with the index of each element among them and their numbers.",
    .inputs = {{"x"}},
    .outputs = {{"y"}, {"idx", kAnyType, Arity::kOptional}, {"counts", kAnyType, Arity::kOptional}},
    .infer = InferByBody,
    .eval = EvalByBody,
    .body = Body,
    .traits = kHostOnly | kDynamicShape,
};

}  // namespace mge::op_microsoft_unique
