// SPDX-License-Identifier: Apache-2.0
#include "core/ops/families/fused_conv.h"

namespace mge::op_fused_conv {
namespace {

absl::StatusOr<bool> Body(FunctionBody& f) {
  const ValueId y = f.Add("Conv", {f.input(0), f.input(1), f.input(2)}, ConvAttributesOf(f.attrs()));
  MGE_RETURN_IF_ERROR(AddFusedConvResult(f, y));
  return true;
}

}  // namespace

MGE_OP(fused_conv) = {
    .name = "FusedConv",
    .domain = "com.microsoft",
    .doc = "An activation of the sum of a Conv and Z.",
    .inputs = kFusedConvInputs,
    .outputs = {{"Y"}},
    .attrs = kFusedConvAttrs,
    .infer = InferByBody,
    .eval = EvalByBody,
    .normalize = NormalizeConv<>,
    .body = Body,
    .examples = {"(T[1,2,5,5], T[3,2,3,3], T[3]) {activation=\"Relu\"}",
                 "(T[1,2,5,5], T[3,2,3,3], T[3], T[1,3,3,3]) {activation=\"Clip\", activation_params=[0.0,6.0]}",
                 "(T[1,2,5,5], T[3,2,3,3]) {activation=\"HardSigmoid\", activation_params=[0.25,0.5]}"},
};

}  // namespace mge::op_fused_conv
