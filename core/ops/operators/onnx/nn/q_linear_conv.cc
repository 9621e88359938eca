// SPDX-License-Identifier: Apache-2.0
#include "core/ops/families/conv_geometry.h"
#include "core/ops/families/quantization.h"

namespace mge::op_q_linear_conv {
namespace {

enum Input { kX, kXScale, kXZero, kW, kWScale, kWZero, kYScale, kYZero, kBias };

// Checks the shapes of all scales and zero points. shape_of(i) is null if unknown or absent.
template <typename ShapeOf>
absl::Status CheckParameters(int64_t channels, ShapeOf shape_of) {
  struct Row {
    int input;
    std::string_view name;
    bool per_channel;
  };
  constexpr Row kRows[] = {{kXScale, "x_scale", false},    {kXZero, "x_zero_point", false}, {kWScale, "w_scale", true},
                           {kWZero, "w_zero_point", true}, {kYScale, "y_scale", false},     {kYZero, "y_zero_point", false}};
  for (const Row& row : kRows) {
    const Shape* shape = shape_of(row.input);
    if (shape) MGE_RETURN_IF_ERROR(CheckPerChannel(row.name, *shape, row.per_channel ? channels : 1));
  }
  const Shape* bias = shape_of(kBias);
  return bias ? RequireShape("the bias", *bias, Shape{channels}) : absl::OkStatus();
}

absl::Status Infer(InferContext& ctx) {
  MGE_RETURN_IF_ERROR(SameElementTypes(ctx, {kX, kXZero}));
  MGE_RETURN_IF_ERROR(SameElementTypes(ctx, {kW, kWZero}));
  const TensorType& w = ctx.input(kW);
  MGE_RETURN_IF_ERROR(CheckParameters(w.has_rank && !w.dims.empty() ? w.dims[0] : kUnknownDim, [&](int i) -> const Shape* {
    return ctx.has_input(i) && ctx.input(i).has_rank ? &ctx.input(i).dims : nullptr;
  }));
  return InferConv(ctx, kX, kW, ctx.input(kYZero).dtype);
}

absl::Status Eval(EvalContext& ctx) {
  const Tensor& x = ctx.input(kX);
  const Tensor& w = ctx.input(kW);
  MGE_ASSIGN_OR_RETURN(ConvGeometry g, ResolveConv(ctx.attrs(), x.shape(), w.shape()));
  MGE_RETURN_IF_ERROR(CheckParameters(
      g.out_channels, [&](int i) -> const Shape* { return ctx.has_input(i) ? &ctx.input(i).shape() : nullptr; }));
  MGE_ASSIGN_OR_RETURN(Tensor * y, ctx.Output(0, ctx.input(kYZero).dtype(), g.OutputShape()));
  if (y->elements() == 0) return absl::OkStatus();
  MGE_ASSIGN_OR_RETURN(Tensor wide_x, SubtractZeroPoint(ctx, x, &ctx.input(kXZero), 1));
  MGE_ASSIGN_OR_RETURN(Tensor wide_w, SubtractZeroPoint(ctx, w, &ctx.input(kWZero), 0));
  const float x_scale = ctx.input(kXScale).Data<float>()[0], y_scale = ctx.input(kYScale).Data<float>()[0];
  std::span<const float> w_scale = ctx.input(kWScale).Data<float>();
  MGE_ASSIGN_OR_RETURN(int64_t y_zero, ScalarInt("y_zero_point", ctx.input(kYZero)));
  std::span<const int32_t> bias;
  if (ctx.has_input(kBias)) bias = ctx.input(kBias).Data<int32_t>();

  auto run = [&](auto* out) {
    using Q = std::remove_pointer_t<decltype(out)>;
    return ConvolveRows<uint32_t>(ctx, g, wide_x.Data<uint32_t>().data(), wide_w.Data<uint32_t>().data(),
                                  [&](int64_t channel, int64_t offset, std::span<const uint32_t> row) {
                                    const float scale = x_scale * w_scale[w_scale.size() == 1 ? 0 : channel] / y_scale;
                                    const uint32_t b = bias.empty() ? 0 : static_cast<uint32_t>(bias[channel]);
                                    for (size_t i = 0; i < row.size(); ++i) {
                                      float value = static_cast<float>(static_cast<int32_t>(row[i] + b)) * scale;
                                      out[offset + i] = Saturate<Q>(std::nearbyint(value) + static_cast<double>(y_zero));
                                    }
                                  });
  };
  return y->dtype() == DType::kU8 ? run(y->MutableData<uint8_t>().data()) : run(y->MutableData<int8_t>().data());
}

}  // namespace

MGE_OP(q_linear_conv) = {
    .name = "QLinearConv",
    .doc =
        "Convolution of quantized tensors: integer sums, rescaled and rounded to the "
        "output's quantization.",
    .inputs = {{"x", kQuantized8},
               {"x_scale", {DType::kF32}},
               {"x_zero_point", kQuantized8},
               {"w", kQuantized8},
               {"w_scale", {DType::kF32}},
               {"w_zero_point", kQuantized8},
               {"y_scale", {DType::kF32}},
               {"y_zero_point", kQuantized8},
               {"B", {DType::kI32}, Arity::kOptional}},
    .outputs = {{"y"}},
    .attrs = kConvAttrs,
    .infer = Infer,
    .eval = Eval,
    .normalize = NormalizeConv<0, 3>,
    .traits = kConvolution,
    .since = 10,
    .examples = {"(T[1,2,6,5]@0:9, float32[]<0.1>, T[]<1>, T[3,2,3,2]@0:9, float32[]<0.2>, T[]<2>, float32[]<0.5>, T[]<3>)"},
};

}  // namespace mge::op_q_linear_conv
