// SPDX-License-Identifier: Apache-2.0
#include "core/ops/function_body.h"

namespace mge::op_bias_gelu {
namespace {

absl::StatusOr<bool> Body(FunctionBody& f) {
  f.Result(0, "Gelu", {f.Add("Add", {f.input(0), f.input(1)})});
  return true;
}

}  // namespace

MGE_OP(bias_gelu) = {
    .name = "BiasGelu",
    .domain = "com.microsoft",
    .doc = "Gelu of A + B.",
    .inputs = {{"A", kFloating}, {"B", kFloating}},
    .outputs = {{"C"}},
    .infer = InferByBody,
    .eval = EvalByBody,
    .body = Body,
    .examples = {"(T[2,3,37], T[37])"},
};

}  // namespace mge::op_bias_gelu
