// SPDX-License-Identifier: Apache-2.0
#include <vector>

#include "core/ops/families/normalization.h"
#include "core/ops/families/normalized.h"
#include "core/ops/gradient.h"

namespace mge::op_rms_normalization {
namespace {

absl::Status Infer(InferContext& ctx) {
  const TensorType& x = ctx.input(0);
  MGE_RETURN_IF_ERROR(ReadDType(ctx.attrs(), "stash_type", kFloating).status());
  if (x.has_rank) {
    MGE_RETURN_IF_ERROR(NormalizeAxis(ctx.attrs().Int("axis"), static_cast<int64_t>(x.dims.size())).status());
    if (ctx.input(1).has_rank) MGE_RETURN_IF_ERROR(CheckFits("scale", ctx.input(1).dims, x.dims));
  }
  TensorType y = x;
  y.dtype = ctx.input(1).dtype;
  ctx.SetOutput(0, std::move(y));
  return absl::OkStatus();
}

absl::Status Eval(EvalContext& ctx) {
  const Tensor& x = ctx.input(0);
  const Tensor& scale = ctx.input(1);
  MGE_ASSIGN_OR_RETURN(int64_t axis, NormalizeAxis(ctx.attrs().Int("axis"), x.rank()));
  MGE_RETURN_IF_ERROR(CheckFits("scale", scale.shape(), x.shape()));
  const double epsilon = ctx.attrs().Float("epsilon");
  const std::vector<double> factors = Doubles(scale);
  const Shape strides = BroadcastStrides(scale.shape(), x.shape());
  int64_t rows = 1, n = 1;
  for (int64_t d = 0; d < x.rank(); ++d) (d < axis ? rows : n) *= x.shape()[d];
  MGE_ASSIGN_OR_RETURN(Tensor * y, ctx.Output(0, scale.dtype(), x.shape()));
  Shape index(x.rank(), 0);
  DispatchFloating(x.dtype(), [&](auto in_tag) {
    DispatchFloating(scale.dtype(), [&](auto out_tag) {
      using Out = typename decltype(out_tag)::type;
      auto in = x.Data<typename decltype(in_tag)::type>();
      auto out = y->MutableData<Out>();
      for (int64_t r = 0; r < rows; ++r) {
        double squares = 0;
        for (int64_t i = r * n; i < (r + 1) * n; ++i) squares += static_cast<double>(in[i]) * static_cast<double>(in[i]);
        const double inverse = 1 / std::sqrt(squares / static_cast<double>(n) + epsilon);
        for (int64_t i = r * n; i < (r + 1) * n; ++i) {
          int64_t s = 0;
          for (int64_t d = 0; d < x.rank(); ++d) s += index[d] * strides[d];
          out[i] = Rounded<Out>(static_cast<double>(in[i]) * inverse * factors[s]);
          NextIndex(x.shape(), std::span<int64_t>(index.data(), index.size()));
        }
      }
    });
  });
  return absl::OkStatus();
}

absl::Status Gradient(GradientContext& g) {
  MGE_ASSIGN_OR_RETURN(const int64_t rank, g.Rank(0));
  MGE_ASSIGN_OR_RETURN(const int64_t axis, NormalizeAxis(g.attrs().Int("axis"), static_cast<size_t>(rank)));
  const Ints axes = AxesFrom(axis, rank);
  const Term scale = 1 / Unary("Sqrt", g.Mean(g.x() * g.x(), axes) + g.attrs().Float("epsilon"));
  const Term x = g.x() * scale, d = g.dy() * g.x(1);
  MGE_RETURN_IF_ERROR(g.Set(0, scale * (d - x * g.Mean(d * x, axes))));
  return g.SetSum(1, g.dy() * x);
}

}  // namespace

MGE_OP(rms_normalization) = {
    .name = "RMSNormalization",
    .doc = "Divides by the root of the mean square over all dimensions from an axis on, then scales.",
    .inputs = {{"X", kFloating}, {"scale", kFloating}},
    .outputs = {{"Y"}},
    .attrs = {AxisOf({"axis", -1, "the first axis that is normalized"}),
              {"epsilon", 1e-5f, "added to the variance"},
              {"stash_type", 1, "the element type of the statistics"}},
    .infer = Infer,
    .eval = Eval,
    .gradient = Gradient,
    .in_place = {{0, 0}},
    .since = 23,
    .examples = {"(T[3,37], T[37])", "(T[2,3,5], T[3,5]) {axis=1}", "(T[2,5003], T[5003])"},
};

}  // namespace mge::op_rms_normalization
