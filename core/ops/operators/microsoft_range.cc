// SPDX-License-Identifier: Apache-2.0
#include "core/ops/function_body.h"

namespace mge::op_microsoft_range {
namespace {

absl::StatusOr<bool> Body(FunctionBody& f) {
  const auto scalar = [&](ValueId v) { return f.Reshape(v, {}); };
  f.Result(0, "Range",
           {scalar(f.input(0)), scalar(f.input(1)), f.has_input(2) ? scalar(f.input(2)) : f.Number(f.dtype(0), 1)});
  return true;
}

}  // namespace

MGE_OP(microsoft_range) = {
    .name = "Range",
    .domain = "com.microsoft",
    .doc = "The numbers from start on, below limit, with a step of delta.",
    .inputs = {{"start", kNumeric}, {"limit", kNumeric}, {"delta", kNumeric, Arity::kOptional}},
    .outputs = {{"Y"}},
    .infer = InferByBody,
    .eval = EvalByBody,
    .body = Body,
    .traits = kDynamicShape | kNoFold,
    .examples = {"(T[]<1>, T[]<9>, T[]<2>)", "(T[]<1>, T[]<9>)"},
};

}  // namespace mge::op_microsoft_range
