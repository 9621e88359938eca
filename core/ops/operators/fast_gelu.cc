// SPDX-License-Identifier: Apache-2.0
#include "core/ops/function_body.h"

namespace mge::op_fast_gelu {
namespace {

absl::StatusOr<bool> Body(FunctionBody& f) {
  f.Result(0, "Gelu", {f.Plus(f.input(0), f.input(1))}, OneAttribute("approximate", std::string("tanh")));
  return true;
}

}  // namespace

MGE_OP(fast_gelu) = {
    .name = "FastGelu",
    .domain = "com.microsoft",
    .doc = "Gelu of X + bias, approximated with tanh.",
    .inputs = {{"X", kFloating}, {"bias", kFloating, Arity::kOptional}},
    .outputs = {{"Y"}},
    .infer = InferByBody,
    .eval = EvalByBody,
    .body = Body,
    .examples = {"(T[2,3,37], T[37])", "(T[3,37])"},
};

}  // namespace mge::op_fast_gelu
