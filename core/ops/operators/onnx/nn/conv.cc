// SPDX-License-Identifier: Apache-2.0
#include "core/ops/families/conv_geometry.h"
#include "core/ops/families/normalized.h"
#include "core/ops/gradient.h"

namespace mge::op_conv {
namespace {

absl::Status CheckBias(const TensorType* bias, int64_t channels) {
  if (!bias || !bias->has_rank) return absl::OkStatus();
  return RequireShape("the bias", bias->dims, Shape{channels});
}

absl::Status Infer(InferContext& ctx) {
  MGE_RETURN_IF_ERROR(SameElementTypes(ctx, {0, 1, 2}));
  if (ctx.has_input(2) && ctx.input(1).has_rank && !ctx.input(1).dims.empty()) {
    MGE_RETURN_IF_ERROR(CheckBias(&ctx.input(2), ctx.input(1).dims[0]));
  }
  return InferConv(ctx, 0, 1, ctx.input(0).dtype);
}

absl::Status Eval(EvalContext& ctx) {
  const Tensor& x = ctx.input(0);
  const Tensor& w = ctx.input(1);
  MGE_ASSIGN_OR_RETURN(ConvGeometry g, ResolveConv(ctx.attrs(), x.shape(), w.shape()));
  Tensor bias;
  if (ctx.has_input(2)) {
    MGE_RETURN_IF_ERROR(RequireShape("the bias", ctx.input(2).shape(), Shape{g.out_channels}));
    MGE_ASSIGN_OR_RETURN(bias, ToComputeType(ctx.input(2), ctx.allocator()));
  }
  MGE_ASSIGN_OR_RETURN(Tensor * y, ctx.Output(0, x.dtype(), g.OutputShape()));
  if (y->elements() == 0) return absl::OkStatus();
  MGE_ASSIGN_OR_RETURN(Tensor wide_x, ToComputeType(x, ctx.allocator()));
  MGE_ASSIGN_OR_RETURN(Tensor wide_w, ToComputeType(w, ctx.allocator()));
  absl::Status status;
  bool known = DispatchFloating(x.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    using A = Compute<T>;
    T* out = y->MutableData<T>().data();
    status = ConvolveRows<A>(ctx, g, wide_x.Data<A>().data(), wide_w.Data<A>().data(),
                             [&](int64_t channel, int64_t offset, std::span<const A> row) {
                               A b = bias.defined() ? bias.Data<A>()[channel] : A(0);
                               for (size_t i = 0; i < row.size(); ++i) out[offset + i] = static_cast<T>(row[i] + b);
                             });
  });
  return known ? status : ctx.Unsupported(std::string(DTypeName(x.dtype())));
}

absl::Status Gradient(GradientContext& g) {
  MGE_ASSIGN_OR_RETURN(const int64_t rank, g.Rank(0));
  if (g.wants(0)) {
    MGE_RETURN_IF_ERROR(g.Set(0, {g, g.AddOurs("ConvInputGradient", {g.dy().id(), g.x(1).id(), g.x(0).id()}, g.attrs())}));
  }
  if (g.wants(1)) {
    MGE_RETURN_IF_ERROR(g.Set(1, {g, g.AddOurs("ConvWeightGradient", {g.x(0).id(), g.dy().id(), g.x(1).id()}, g.attrs())}));
  }
  return g.wants(2) ? g.Set(2, PerChannel(g, rank).Sum(g.dy())) : absl::OkStatus();
}

}  // namespace

MGE_OP(conv) = {
    .name = "Conv",
    .doc = "Convolution of X [N,C,...] with W [M,C/group,...] over any number of spatial axes.",
    .inputs = {{"X", kFloating}, {"W", kFloating}, {"B", kFloating, Arity::kOptional}},
    .outputs = {{"Y"}},
    .attrs = kConvAttrs,
    .infer = Infer,
    .eval = Eval,
    .normalize = NormalizeConv<>,
    .gradient = Gradient,
    .traits = kConvolution,
    .examples = {"(T[2,3,7,5], T[4,3,2,3])",
                 "(T[1,4,9,8], T[6,2,3,2], T[6]) {group=2, kernel_shape=[3,2], pads=[1,0,0,1], strides=[2,3]}",
                 "(T[1,5,6,8], T[5,1,3,2]) {group=5, pads=[1,0,2,1]}", "(T[1,16,5,5], T[24,16,1,1], T[24])",
                 "(T[1,16,17,19], T[32,16,3,3], T[32]) {pads=[1,1,1,1]}",
                 "(T[2,24,9,11], T[8,24,5,5]) {pads=[2,2,2,2], strides=[2,1]}",
                 "(T[1,32,11,9], T[32,1,5,5], T[32]) {group=32, pads=[2,2,2,2]}",
                 "(T[1,64,33,31], T[64,1,3,3]) {group=64, pads=[1,1,1,1]}", "(T[2,3,11], T[4,3,3]) {dilations=[2]}",
                 "(T[1,2,4,5,3], T[3,2,2,2,2])",
                 "(T[1,10,5,3], T[4,5,3,2]) {group=2}; (T[1,12,3,5], T[2,6,2,3]) {group=2}; "
                 "(T[1,14,3,4], T[6,7,1,2]) {group=2}",
                 "(T[1,37,3,69], T[67,37,2,3]) once"},
};

}  // namespace mge::op_conv
