// SPDX-License-Identifier: Apache-2.0
#include "core/ops/function_body.h"

namespace mge::op_skip_layer_normalization {
namespace {

absl::StatusOr<bool> Body(FunctionBody& f) {
  const ValueId sum = f.Plus(f.Add("Add", {f.input(0), f.input(1)}), f.input(4));
  f.Result(3, "Identity", {sum});
  f.AddTo({f.output(0), f.output(1), f.output(2)}, "LayerNormalization", {sum, f.input(2), f.input(3)},
          OneAttribute("epsilon", f.attrs().Float("epsilon")));
  return true;
}

}  // namespace

MGE_OP(skip_layer_normalization) = {
    .name = "SkipLayerNormalization",
    .domain = "com.microsoft",
    .doc = "LayerNormalization of input + skip + bias over the last dimension.",
    .inputs = {{"input", kFloating},
               {"skip", kFloating},
               {"gamma", kFloating},
               {"beta", kFloating, Arity::kOptional},
               {"bias", kFloating, Arity::kOptional}},
    .outputs = {{"output"},
                {"mean", kAnyType, Arity::kOptional},
                {"inv_std_var", kAnyType, Arity::kOptional},
                {"input_skip_bias_sum", kAnyType, Arity::kOptional}},
    .attrs = {{"epsilon", 1e-12f, "added to the variance"}},
    .infer = InferByBody,
    .eval = EvalByBody,
    .body = Body,
    .examples = {"(T[2,3,37], T[2,3,37], T[37], T[37], T[37])", "(T[2,3,37], T[3,37], T[37]) {epsilon=0.001} -> 4"},
};

}  // namespace mge::op_skip_layer_normalization
