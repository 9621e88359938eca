// SPDX-License-Identifier: Apache-2.0
#include <vector>

#include "core/ops/families/normalization.h"
#include "core/ops/families/normalized.h"
#include "core/ops/families/unary.h"
#include "core/ops/gradient.h"

namespace mge::op_instance_normalization {
namespace {

absl::Status Check(std::span<const int64_t> x, std::span<const int64_t> scale, std::span<const int64_t> bias) {
  if (x.size() < 2) {
    return Fail(errors::kInvalidNode, fmt::format("the input has shape {}, expected [N,C,...]", ShapeText(x)));
  }
  MGE_RETURN_IF_ERROR(CheckPerChannel(x, "scale", scale));
  return CheckPerChannel(x, "B", bias);
}

absl::Status Infer(InferContext& ctx) {
  if (ctx.input(0).has_rank && ctx.input(1).has_rank && ctx.input(2).has_rank) {
    MGE_RETURN_IF_ERROR(Check(ctx.input(0).dims, ctx.input(1).dims, ctx.input(2).dims));
  }
  return SameTypeAsFirst(ctx);
}

absl::Status Eval(EvalContext& ctx) {
  const Tensor& x = ctx.input(0);
  MGE_RETURN_IF_ERROR(Check(x.shape(), ctx.input(1).shape(), ctx.input(2).shape()));
  double epsilon = ctx.attrs().Float("epsilon");
  std::vector<double> scale = Doubles(ctx.input(1)), bias = Doubles(ctx.input(2));
  MGE_ASSIGN_OR_RETURN(Tensor * y, ctx.Output(0, x.dtype(), x.shape()));
  if (y->elements() == 0) return absl::OkStatus();
  int64_t channels = x.shape()[1], rows = x.shape()[0] * channels, n = x.elements() / rows;
  DispatchFloating(x.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    for (int64_t r = 0; r < rows; ++r) {
      const T* in = x.Data<T>().data() + r * n;
      T* out = y->MutableData<T>().data() + r * n;
      Moments m = MomentsOf(in, n);
      double factor = scale[r % channels] / std::sqrt(m.variance + epsilon);
      for (int64_t i = 0; i < n; ++i) {
        out[i] = Rounded<T>((static_cast<double>(in[i]) - m.mean) * factor + bias[r % channels]);
      }
    }
  });
  return absl::OkStatus();
}

absl::Status Gradient(GradientContext& g) {
  MGE_ASSIGN_OR_RETURN(const int64_t rank, g.Rank(0));
  const Normalized n(g, g.x(), AxesFrom(2, rank), g.attrs().Float("epsilon"));
  const PerChannel channels(g, rank);
  MGE_RETURN_IF_ERROR(g.Set(0, n.Gradient(g.dy() * channels.Wide(g.x(1)))));
  MGE_RETURN_IF_ERROR(g.Set(1, channels.Sum(g.dy() * n.x)));
  return g.Set(2, channels.Sum(g.dy()));
}

}  // namespace

MGE_OP(instance_normalization) = {
    .name = "InstanceNormalization",
    .doc = "Normalizes each channel of each sample to mean 0 and variance 1, then scales and shifts.",
    .inputs = {{"input", kFloating}, {"scale", kFloating}, {"B", kFloating}},
    .outputs = {{"output"}},
    .attrs = {{"epsilon", 1e-5f, "added to the variance"}},
    .infer = Infer,
    .eval = Eval,
    .upgrade = DropConsumedInputs,
    .gradient = Gradient,
    .in_place = {{0, 0}},
    .examples = {"(T[2,3,5,4], T[3], T[3])"},
};

}  // namespace mge::op_instance_normalization
