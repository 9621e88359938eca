// SPDX-License-Identifier: Apache-2.0
#include "core/ops/function_body.h"

namespace mge::op_quick_gelu {
namespace {

absl::StatusOr<bool> Body(FunctionBody& f) {
  f.Result(0, "Swish", {f.input(0)}, OneAttribute("alpha", f.attrs().Float("alpha")));
  return true;
}

}  // namespace

MGE_OP(quick_gelu) = {
    .name = "QuickGelu",
    .domain = "com.microsoft",
    .doc = "X * sigmoid(alpha * X).",
    .inputs = {{"X", kFloating}},
    .outputs = {{"Y"}},
    .attrs = {{"alpha", 1.702f, "the factor inside the sigmoid"}},
    .infer = InferByBody,
    .eval = EvalByBody,
    .body = Body,
    .examples = {"(T[3,37])", "(T[3,37]) {alpha=1.0}"},
};

}  // namespace mge::op_quick_gelu
