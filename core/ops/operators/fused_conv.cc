// SPDX-License-Identifier: Apache-2.0
#include "core/ops/families/activation.h"

namespace mge::op_fused_conv {
namespace {

absl::StatusOr<bool> Body(FunctionBody& f) {
  const ValueId y = f.Add("Conv", {f.input(0), f.input(1), f.input(2)},
                          f.Only({"auto_pad", "dilations", "group", "kernel_shape", "pads", "strides"}));
  const std::string activation = f.attrs().Text("activation");
  const Attributes parameters = ActivationParameters(activation, f.attrs().FloatList("activation_params"));
  MGE_RETURN_IF_ERROR(AddActivation(f, f.Plus(y, f.input(3)), f.dtype(0), activation, parameters));
  return true;
}

}  // namespace

MGE_OP(fused_conv) = {
    .name = "FusedConv",
    .domain = "com.microsoft",
    .doc = "An activation of the sum of a Conv and Z.",
    .inputs = {{"X", kFloating}, {"W", kFloating}, {"B", kFloating, Arity::kOptional}, {"Z", kFloating, Arity::kOptional}},
    .outputs = {{"Y"}},
    .attrs = {{"activation", AttrType::kText},
              {"activation_params", AttrType::kFloats},
              {"auto_pad", AttrType::kText},
              {"dilations", AttrType::kInts},
              {"group", AttrType::kInt},
              {"kernel_shape", AttrType::kInts},
              {"pads", AttrType::kInts},
              {"strides", AttrType::kInts}},
    .infer = InferByBody,
    .eval = EvalByBody,
    .body = Body,
    .examples = {"(T[1,2,5,5], T[3,2,3,3], T[3]) {activation=\"Relu\"}",
                 "(T[1,2,5,5], T[3,2,3,3], T[3], T[1,3,3,3]) {activation=\"Clip\", activation_params=[0.0,6.0]}",
                 "(T[1,2,5,5], T[3,2,3,3]) {activation=\"HardSigmoid\", activation_params=[0.25,0.5]}"},
};

}  // namespace mge::op_fused_conv
