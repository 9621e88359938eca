// SPDX-License-Identifier: Apache-2.0
#include "core/ops/families/channels_last.h"
#include "core/ops/families/fused_conv.h"

namespace mge::op_nhwc_fused_conv {
namespace {

absl::StatusOr<bool> Body(FunctionBody& f) {
  if (!f.has_rank(0) || !f.has_rank(1)) return false;
  if (f.rank(0) < 3 || f.rank(1) != f.rank(0)) return f.Invalid("X and W must have the same rank, at least 3");
  const ValueId y =
      f.Add("Conv", {ChannelsSecond(f, f.input(0), f.rank(0)), ChannelsSecond(f, f.input(1), f.rank(1)), f.input(2)},
            ConvAttributesOf(f.attrs()));
  MGE_RETURN_IF_ERROR(AddFusedConvResult(f, f.Transpose(y, ChannelsLast(f.rank(0)))));
  return true;
}

}  // namespace

MGE_OP(nhwc_fused_conv) = {
    .name = "NhwcFusedConv",
    .domain = "com.microsoft",
    .doc = "FusedConv with the channels last, also those of the filter.",
    .inputs = kFusedConvInputs,
    .outputs = {{"Y"}},
    .attrs = kFusedConvAttrs,
    .infer = InferByBody,
    .eval = EvalByBody,
    .normalize = NormalizeAnyWindow<1>,
    .body = Body,
    .examples = {"(T[1,5,5,2], T[3,3,3,2], T[3], T[1,3,3,3]) {activation=\"Relu\"}"},
};

}  // namespace mge::op_nhwc_fused_conv
