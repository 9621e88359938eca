// SPDX-License-Identifier: Apache-2.0
#include "core/ops/families/conv_geometry.h"
#include "core/ops/function_body.h"

namespace mge::op_conv_input_gradient {
namespace {

absl::Status Infer(InferContext& ctx) {
  ctx.SetOutput(0, ctx.input(2));
  return absl::OkStatus();
}

// A transposed convolution. The output padding gives the elements that the last window did not reach.
absl::StatusOr<bool> Body(FunctionBody& f) {
  if (!f.IsStatic()) return false;
  MGE_ASSIGN_OR_RETURN(const ConvGeometry g, ResolveConv(f.attrs(), f.dims(2), f.dims(1)));
  Ints pads_begin, pads_end, strides, dilations, rest;
  for (const WindowAxis& axis : g.window) {
    pads_begin.push_back(axis.pad_begin);
    pads_end.push_back(axis.pad_end);
    strides.push_back(axis.stride);
    dilations.push_back(axis.dilation);
    rest.push_back(axis.in + axis.pad_begin + axis.pad_end - ((axis.out - 1) * axis.stride + axis.Extent()));
  }
  pads_begin.insert(pads_begin.end(), pads_end.begin(), pads_end.end());
  Attributes attrs = IntAttribute("group", g.group);
  attrs.Set("pads", pads_begin);
  attrs.Set("strides", strides);
  attrs.Set("dilations", dilations);
  attrs.Set("output_padding", rest);
  f.Result(0, "ConvTranspose", {f.input(0), f.input(1)}, std::move(attrs));
  return true;
}

}  // namespace

MGE_OP(conv_input_gradient) = {
    .name = "ConvInputGradient",
    .domain = "mge",
    .doc =
        "The gradient of a Conv by its input X, from that of its output (dY) and the weights. Of X, only the type is used.",
    .inputs = {{"dY", kFloating}, {"W", kFloating}, {"X", kFloating}},
    .outputs = {{"dX"}},
    .attrs = kConvAttrs,
    .infer = Infer,
    .eval = EvalByBody,
    .normalize = NormalizeConv<2, 1>,
    .body = Body,
    .examples = {"(T[2,4,6,3], T[4,3,2,3], T[2,3,7,5])",
                 "(T[1,6,4,3], T[6,2,3,2], T[1,4,9,8]) {group=2, kernel_shape=[3,2], pads=[1,0,0,1], strides=[2,3]}",
                 "(T[4,24,15,14], T[24,16,3,3], T[4,16,15,14]) {pads=[1,1,1,1]}"},
};

}  // namespace mge::op_conv_input_gradient
