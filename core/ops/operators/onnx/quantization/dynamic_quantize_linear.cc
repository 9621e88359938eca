// SPDX-License-Identifier: Apache-2.0
#include "core/ops/families/quantization.h"

namespace mge::op_dynamic_quantize_linear {
namespace {

absl::Status Infer(InferContext& ctx) {
  TensorType y = ctx.input(0);
  y.dtype = DType::kU8;
  ctx.SetOutput(0, std::move(y));
  ctx.SetOutput(1, MakeType(DType::kF32, {}));
  ctx.SetOutput(2, MakeType(DType::kU8, {}));
  return absl::OkStatus();
}

absl::Status Eval(EvalContext& ctx) {
  const Tensor& x = ctx.input(0);
  MGE_ASSIGN_OR_RETURN(Tensor * y, ctx.Output(0, DType::kU8, x.shape()));
  MGE_ASSIGN_OR_RETURN(Tensor * y_scale, ctx.Output(1, DType::kF32, {}));
  MGE_ASSIGN_OR_RETURN(Tensor * y_zero, ctx.Output(2, DType::kU8, {}));
  std::span<const float> in = x.Data<float>();
  float low = 0, high = 0;  // the range always contains 0, so that 0 is exact
  for (float v : in) {
    low = std::min(low, v);
    high = std::max(high, v);
  }
  const float scale = high == low ? 1.0f : (high - low) / 255.0f;
  const double zero = std::nearbyint(std::clamp(0.0f - low / scale, 0.0f, 255.0f));
  std::span<uint8_t> out = y->MutableData<uint8_t>();
  for (size_t i = 0; i < in.size(); ++i) out[i] = Saturate<uint8_t>(std::nearbyint(in[i] / scale) + zero);
  y_scale->MutableData<float>()[0] = scale;
  y_zero->MutableData<uint8_t>()[0] = static_cast<uint8_t>(zero);
  return absl::OkStatus();
}

}  // namespace

MGE_OP(dynamic_quantize_linear) = {
    .name = "DynamicQuantizeLinear",
    .doc = "Quantizes to uint8 with the scale and zero point that cover the range of the data.",
    .inputs = {{"x", {DType::kF32}}},
    .outputs = {{"y"}, {"y_scale"}, {"y_zero_point"}},
    .infer = Infer,
    .eval = Eval,
    .since = 11,
    .examples = {"(T[3,7]) -> 3"},
};

}  // namespace mge::op_dynamic_quantize_linear
