// SPDX-License-Identifier: Apache-2.0
#include "core/ops/families/channels_last.h"
#include "core/ops/families/conv_geometry.h"
#include "core/ops/families/fused_quantized.h"

namespace mge::op_microsoft_q_linear_conv {
namespace {

enum Input { kX, kXScale, kXZero, kW, kWScale, kWZero, kYScale, kYZero, kBias };

absl::StatusOr<bool> Body(FunctionBody& f) {
  if (!f.has_rank(kX)) return false;
  if (f.rank(kX) < 3) return f.Invalid("x must have at least 3 dimensions");
  const bool last = f.attrs().Int("channels_last") != 0;
  std::vector<ValueId> inputs;
  for (int i = 0; i < f.input_count(); ++i) inputs.push_back(f.input(i));
  if (last) inputs[kX] = ChannelsSecond(f, inputs[kX], f.rank(kX));
  const Attributes attrs = ConvAttributesOf(f.attrs());
  if (last) {
    f.Result(0, "Transpose", {f.Add("QLinearConv", std::move(inputs), attrs)},
             OneAttribute("perm", ChannelsLast(f.rank(kX))));
  } else {
    f.Result(0, "QLinearConv", std::move(inputs), attrs);
  }
  return true;
}

}  // namespace

MGE_OP(microsoft_q_linear_conv) = {
    .name = "QLinearConv",
    .domain = "com.microsoft",
    .doc = "QLinearConv, whose input and output may have the channels last.",
    .inputs = {{"x", kQuantized8},
               {"x_scale", kFloat32},
               {"x_zero_point", kQuantized8},
               {"w", kQuantized8},
               {"w_scale", kFloat32},
               {"w_zero_point", kQuantized8},
               {"y_scale", kFloat32},
               {"y_zero_point", kQuantized8},
               {"B", {DType::kI32}, Arity::kOptional}},
    .outputs = {{"y"}},
    .attrs = WithConvAttrs({{"channels_last", 0, "not 0: the channels are the last axis"}}),
    .infer = InferByBody,
    .eval = EvalByBody,
    .normalize = NormalizeAnyWindow<3>,
    .body = Body,
    .examples = {"(T[1,5,5,2], float32[]<0.05>, T[]<3>, int8[3,2,3,3], float32[]<0.1>, int8[]<0>, float32[]<0.2>, T[]<1>) "
                 "{channels_last=1}"},
};

}  // namespace mge::op_microsoft_q_linear_conv
