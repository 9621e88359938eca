// SPDX-License-Identifier: Apache-2.0
#include "core/ops/families/rms_function.h"

namespace mge::op_simplified_layer_normalization {
namespace {

absl::StatusOr<bool> Body(FunctionBody& f) {
  int64_t axis = f.attrs().Int("axis");
  if (f.has_rank(0) && axis == f.rank(0) - 1) axis = -1;
  MGE_RETURN_IF_ERROR(AddRmsNorm(f, f.input(0), f.dtype(0), 1, f.attrs().Float("epsilon"), axis, 1));
  return true;
}

}  // namespace

MGE_OP(simplified_layer_normalization) = {
    .name = "SimplifiedLayerNormalization",
    .doc = "RMSNormalization, as ONNX Runtime named it before ONNX had it.",
    .inputs = {{"X", kFloating}, {"scale", kFloating}},
    .outputs = {{"Y"}, {"inv_std_var", kAnyType, Arity::kOptional}},
    .attrs = {AxisOf({"axis", -1, "the first axis that is normalized"}),
              {"epsilon", 1e-5f, "added to the variance"},
              {"stash_type", 1, "the element type of the statistics"}},
    .infer = InferByBody,
    .eval = EvalByBody,
    .body = Body,
    .examples = {"(T[3,37], T[37])", "(T[2,3,5], T[3,5]) {axis=1}", "(T[2,3,37], T[37]) {axis=2} -> 2"},
};

}  // namespace mge::op_simplified_layer_normalization
