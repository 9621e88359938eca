// SPDX-License-Identifier: Apache-2.0
#include "core/ops/families/rms_function.h"

namespace mge::op_skip_simplified_layer_normalization {
namespace {

absl::StatusOr<bool> Body(FunctionBody& f) {
  if (f.output(1) != kNone) return f.Unsupported("the output mean");
  const ValueId sum = f.Plus(f.Add("Add", {f.input(0), f.input(1)}), f.input(3));
  f.Result(3, "Identity", {sum});
  MGE_RETURN_IF_ERROR(AddRmsNorm(f, sum, f.dtype(0), 2, f.attrs().Float("epsilon"), -1, 2));
  return true;
}

}  // namespace

MGE_OP(skip_simplified_layer_normalization) = {
    .name = "SkipSimplifiedLayerNormalization",
    .domain = "com.microsoft",
    .doc = "RMSNormalization of input + skip + bias over the last dimension.",
    .inputs = {{"input", kFloating}, {"skip", kFloating}, {"gamma", kFloating}, {"bias", kFloating, Arity::kOptional}},
    .outputs = {{"output"},
                {"mean", kAnyType, Arity::kOptional},
                {"inv_std_var", kAnyType, Arity::kOptional},
                {"input_skip_bias_sum", kAnyType, Arity::kOptional}},
    .attrs = {{"epsilon", 1e-12f, "added to the variance"}},
    .infer = InferByBody,
    .eval = EvalByBody,
    .body = Body,
    .examples = {"(T[2,3,37], T[2,3,37], T[37], T[37])", "(T[2,3,37], T[2,3,37], T[37]) {epsilon=0.001}"},
};

}  // namespace mge::op_skip_simplified_layer_normalization
