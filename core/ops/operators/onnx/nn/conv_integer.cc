// SPDX-License-Identifier: Apache-2.0
#include "core/ops/families/conv_geometry.h"
#include "core/ops/families/quantization.h"

namespace mge::op_conv_integer {
namespace {

absl::Status Infer(InferContext& ctx) {
  MGE_RETURN_IF_ERROR(SameElementTypes(ctx, {0, 2}));
  MGE_RETURN_IF_ERROR(SameElementTypes(ctx, {1, 3}));
  if (ctx.has_input(2) && ctx.input(2).has_rank) {
    MGE_RETURN_IF_ERROR(CheckPerChannel("the zero point of x", ctx.input(2).dims, 1));
  }
  if (ctx.has_input(3) && ctx.input(3).has_rank && ctx.input(1).has_rank && !ctx.input(1).dims.empty()) {
    MGE_RETURN_IF_ERROR(CheckPerChannel("the zero point of w", ctx.input(3).dims, ctx.input(1).dims[0]));
  }
  return InferConv(ctx, 0, 1, DType::kI32);
}

absl::Status Eval(EvalContext& ctx) {
  const Tensor& x = ctx.input(0);
  const Tensor& w = ctx.input(1);
  MGE_ASSIGN_OR_RETURN(ConvGeometry g, ResolveConv(ctx.attrs(), x.shape(), w.shape()));
  const Tensor* x_zero = ctx.has_input(2) ? &ctx.input(2) : nullptr;
  const Tensor* w_zero = ctx.has_input(3) ? &ctx.input(3) : nullptr;
  if (x_zero) MGE_RETURN_IF_ERROR(CheckPerChannel("the zero point of x", x_zero->shape(), 1));
  if (w_zero) MGE_RETURN_IF_ERROR(CheckPerChannel("the zero point of w", w_zero->shape(), g.out_channels));
  MGE_ASSIGN_OR_RETURN(Tensor * y, ctx.Output(0, DType::kI32, g.OutputShape()));
  if (y->elements() == 0) return absl::OkStatus();
  MGE_ASSIGN_OR_RETURN(Tensor wide_x, SubtractZeroPoint(ctx, x, x_zero, 1));
  MGE_ASSIGN_OR_RETURN(Tensor wide_w, SubtractZeroPoint(ctx, w, w_zero, 0));
  int32_t* out = y->MutableData<int32_t>().data();
  return ConvolveRows<uint32_t>(ctx, g, wide_x.Data<uint32_t>().data(), wide_w.Data<uint32_t>().data(),
                                [&](int64_t, int64_t offset, std::span<const uint32_t> row) {
                                  for (size_t i = 0; i < row.size(); ++i) out[offset + i] = static_cast<int32_t>(row[i]);
                                });
}

}  // namespace

MGE_OP(conv_integer) = {
    .name = "ConvInteger",
    .doc = "Convolution of 8-bit integers minus their zero points, summed in int32.",
    .inputs = {{"x", kQuantized8},
               {"w", kQuantized8},
               {"x_zero_point", kQuantized8, Arity::kOptional},
               {"w_zero_point", kQuantized8, Arity::kOptional}},
    .outputs = {{"y"}},
    .attrs = kConvAttrs,
    .infer = Infer,
    .eval = Eval,
    .normalize = NormalizeConv<>,
    .traits = kConvolution,
    .since = 10,
    .examples = {"(T[1,2,6,5]@0:9, T[3,2,3,2]@0:9)"},
};

}  // namespace mge::op_conv_integer
