// SPDX-License-Identifier: Apache-2.0
#include <vector>

#include "core/ops/families/normalization.h"
#include "core/ops/families/normalized.h"
#include "core/ops/gradient.h"

namespace mge::op_layer_normalization {
namespace {

// Returns the type of the outputs Mean and InvStdDev.
absl::StatusOr<DType> StashType(const Attributes& attrs) { return ReadDType(attrs, "stash_type", kFloating); }

absl::Status Infer(InferContext& ctx) {
  const TensorType& x = ctx.input(0);
  ctx.SetOutput(0, x);
  MGE_ASSIGN_OR_RETURN(DType stash, StashType(ctx.attrs()));
  TensorType statistics = UnrankedType(stash);
  if (x.has_rank) {
    MGE_ASSIGN_OR_RETURN(int64_t axis, NormalizeAxis(ctx.attrs().Int("axis"), static_cast<int64_t>(x.dims.size())));
    for (int i = 1; i < ctx.input_count(); ++i) {
      if (ctx.has_input(i) && ctx.input(i).has_rank) {
        MGE_RETURN_IF_ERROR(CheckFits(i == 1 ? "Scale" : "B", ctx.input(i).dims, x.dims));
      }
    }
    statistics.has_rank = true;
    statistics.dims = x.dims;
    for (size_t d = axis; d < x.dims.size(); ++d) statistics.dims[d] = 1;
  }
  ctx.SetOutput(1, statistics);
  ctx.SetOutput(2, statistics);
  return absl::OkStatus();
}

void Store(Tensor& out, int64_t at, double value) {
  DispatchFloating(out.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    out.MutableData<T>()[at] = Rounded<T>(value);
  });
}

absl::Status Eval(EvalContext& ctx) {
  const Tensor& x = ctx.input(0);
  MGE_ASSIGN_OR_RETURN(DType stash, StashType(ctx.attrs()));
  MGE_ASSIGN_OR_RETURN(int64_t axis, NormalizeAxis(ctx.attrs().Int("axis"), x.rank()));
  MGE_RETURN_IF_ERROR(CheckFits("Scale", ctx.input(1).shape(), x.shape()));
  if (ctx.has_input(2)) MGE_RETURN_IF_ERROR(CheckFits("B", ctx.input(2).shape(), x.shape()));
  double epsilon = ctx.attrs().Float("epsilon");
  std::vector<double> scale = Doubles(ctx.input(1));
  std::vector<double> bias = ctx.has_input(2) ? Doubles(ctx.input(2)) : std::vector<double>{0};
  Shape scale_strides = BroadcastStrides(ctx.input(1).shape(), x.shape());
  Shape bias_strides = BroadcastStrides(ctx.has_input(2) ? ctx.input(2).shape() : Shape{}, x.shape());
  int64_t rows = 1, n = 1;
  Shape reduced = x.shape();
  for (int64_t d = 0; d < x.rank(); ++d) {
    (d < axis ? rows : n) *= x.shape()[d];
    if (d >= axis) reduced[d] = 1;
  }
  MGE_ASSIGN_OR_RETURN(Tensor * y, ctx.Output(0, x.dtype(), x.shape()));
  MGE_ASSIGN_OR_RETURN(Tensor * means, ctx.Output(1, stash, reduced));
  MGE_ASSIGN_OR_RETURN(Tensor * inverses, ctx.Output(2, stash, reduced));
  Shape index(x.rank(), 0);
  DispatchFloating(x.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    for (int64_t r = 0; r < rows; ++r) {
      const T* in = x.Data<T>().data() + r * n;
      T* out = y->MutableData<T>().data() + r * n;
      Moments m = MomentsOf(in, n);
      double inverse = 1 / std::sqrt(m.variance + epsilon);
      Store(*means, r, m.mean);
      Store(*inverses, r, inverse);
      for (int64_t i = 0; i < n; ++i) {
        int64_t s = 0, b = 0;
        for (int64_t d = 0; d < x.rank(); ++d) {
          s += index[d] * scale_strides[d];
          b += index[d] * bias_strides[d];
        }
        out[i] = Rounded<T>((static_cast<double>(in[i]) - m.mean) * inverse * scale[s] + bias[b]);
        NextIndex(x.shape(), std::span<int64_t>(index.data(), index.size()));
      }
    }
  });
  return absl::OkStatus();
}

absl::Status Gradient(GradientContext& g) {
  MGE_ASSIGN_OR_RETURN(const int64_t rank, g.Rank(0));
  MGE_ASSIGN_OR_RETURN(const int64_t axis, NormalizeAxis(g.attrs().Int("axis"), static_cast<size_t>(rank)));
  const Normalized n(g, g.x(), AxesFrom(axis, rank), g.attrs().Float("epsilon"));
  MGE_RETURN_IF_ERROR(g.Set(0, n.Gradient(g.dy() * g.x(1))));
  MGE_RETURN_IF_ERROR(g.SetSum(1, g.dy() * n.x));
  return g.wants(2) ? g.SetSum(2, g.dy()) : absl::OkStatus();
}

}  // namespace

MGE_OP(layer_normalization) = {
    .name = "LayerNormalization",
    .doc = "Normalizes all dimensions from an axis on to mean 0 and variance 1, then scales and shifts.",
    .inputs = {{"X", kFloating}, {"Scale", kFloating}, {"B", kFloating, Arity::kOptional}},
    .outputs = {{"Y"}, {"Mean", kAnyType, Arity::kOptional}, {"InvStdDev", kAnyType, Arity::kOptional}},
    .attrs = {AxisOf({"axis", -1, "the first axis that is normalized"}),
              {"epsilon", 1e-5f, "added to the variance"},
              {"stash_type", 1, "the element type of the statistics"}},
    .infer = Infer,
    .eval = Eval,
    .gradient = Gradient,
    .in_place = {{0, 0}},
    .since = 1,  // 17 in ONNX; ONNX Runtime writes it into models of older operator sets
    .examples = {"(T[3,37], T[37], T[37])", "(T[2,3,5], T[3,5]) {axis=1}", "(T[2,5003], T[5003], T[5003])"},
};

}  // namespace mge::op_layer_normalization
