// SPDX-License-Identifier: Apache-2.0
#include "core/ops/function_body.h"

namespace mge::op_bias_add {
namespace {

absl::StatusOr<bool> Body(FunctionBody& f) {
  f.Result(0, "Add", {f.Add("Add", {f.input(0), f.input(1)}), f.input(2)});
  return true;
}

}  // namespace

MGE_OP(bias_add) = {
    .name = "BiasAdd",
    .domain = "com.microsoft",
    .doc = "X + bias + skip.",
    .inputs = {{"X", kFloating}, {"bias", kFloating}, {"skip", kFloating}},
    .outputs = {{"Y"}},
    .infer = InferByBody,
    .eval = EvalByBody,
    .body = Body,
    .examples = {"(T[2,3,37], T[37], T[2,3,37])"},
};

}  // namespace mge::op_bias_add
