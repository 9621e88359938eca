// SPDX-License-Identifier: Apache-2.0
#include "core/ops/families/activation.h"
#include "core/ops/families/channels_last.h"

namespace mge::op_nhwc_fused_conv {
namespace {

absl::StatusOr<bool> Body(FunctionBody& f) {
  if (!f.has_rank(0) || !f.has_rank(1)) return false;
  if (f.rank(0) < 3 || f.rank(1) != f.rank(0)) return f.Invalid("X and W must have the same rank, at least 3");
  const ValueId y =
      f.Add("Conv", {ChannelsSecond(f, f.input(0), f.rank(0)), ChannelsSecond(f, f.input(1), f.rank(1)), f.input(2)},
            f.Only({"auto_pad", "dilations", "group", "kernel_shape", "pads", "strides"}));
  const ValueId back = f.Transpose(y, ChannelsLast(f.rank(0)));
  const std::string activation = f.attrs().Text("activation");
  const Attributes parameters = ActivationParameters(activation, f.attrs().FloatList("activation_params"));
  MGE_RETURN_IF_ERROR(AddActivation(f, f.Plus(back, f.input(3)), f.dtype(0), activation, parameters));
  return true;
}

}  // namespace

MGE_OP(nhwc_fused_conv) = {
    .name = "NhwcFusedConv",
    .domain = "com.microsoft",
    .doc = "FusedConv with the channels last, also those of the filter.",
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
    .examples = {"(T[1,5,5,2], T[3,3,3,2], T[3], T[1,3,3,3]) {activation=\"Relu\"}"},
};

}  // namespace mge::op_nhwc_fused_conv
