// SPDX-License-Identifier: Apache-2.0
#include "core/ops/function_body.h"

namespace mge::op_microsoft_gelu {
namespace {

absl::StatusOr<bool> Body(FunctionBody& f) {
  f.Result(0, "Gelu", {f.input(0)});
  return true;
}

}  // namespace

MGE_OP(microsoft_gelu) = {
    .name = "Gelu",
    .domain = "com.microsoft",
    .doc = "x times the Gaussian distribution function of x.",
    .inputs = {{"X", kFloating}},
    .outputs = {{"Y"}},
    .infer = InferByBody,
    .eval = EvalByBody,
    .body = Body,
    .examples = {"(T[3,37])"},
};

}  // namespace mge::op_microsoft_gelu
