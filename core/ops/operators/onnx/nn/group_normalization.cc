// SPDX-License-Identifier: Apache-2.0
#include <vector>

#include "core/ops/families/normalization.h"
#include "core/ops/families/normalized.h"
#include "core/ops/gradient.h"

namespace mge::op_group_normalization {
namespace {

absl::Status Check(const Node& node, std::span<const int64_t> x, std::span<const int64_t> scale,
                   std::span<const int64_t> bias) {
  auto fault = [](std::string what) { return Fail(errors::kInvalidNode, std::move(what)); };
  int64_t groups = node.attrs.Int("num_groups");
  if (x.size() < 2) return fault(fmt::format("X has shape {}, expected [N,C,...]", ShapeText(x)));
  if (groups < 1 || (x[1] >= 0 && x[1] % groups != 0)) {
    return fault(fmt::format("{} channels cannot be divided into num_groups = {}", x[1], groups));
  }
  int64_t wanted = node.attrs.Int("_per_group") != 0 ? groups : x[1];
  for (auto shape : {scale, bias}) {
    if (shape.size() != 1 || (shape[0] >= 0 && wanted >= 0 && shape[0] != wanted)) {
      return fault(fmt::format("scale and bias have shape {}, expected [{}]", ShapeText(shape), wanted));
    }
  }
  return absl::OkStatus();
}

absl::Status Infer(InferContext& ctx) {
  if (ctx.input(0).has_rank && ctx.input(1).has_rank && ctx.input(2).has_rank) {
    MGE_RETURN_IF_ERROR(Check(ctx.node(), ctx.input(0).dims, ctx.input(1).dims, ctx.input(2).dims));
  }
  return SameTypeAsFirst(ctx);
}

absl::Status Eval(EvalContext& ctx) {
  const Tensor& x = ctx.input(0);
  MGE_RETURN_IF_ERROR(Check(ctx.node(), x.shape(), ctx.input(1).shape(), ctx.input(2).shape()));
  double epsilon = ctx.attrs().Float("epsilon");
  bool per_group = ctx.attrs().Int("_per_group") != 0;
  int64_t groups = ctx.attrs().Int("num_groups");
  std::vector<double> scale = Doubles(ctx.input(1)), bias = Doubles(ctx.input(2));
  MGE_ASSIGN_OR_RETURN(Tensor * y, ctx.Output(0, x.dtype(), x.shape()));
  if (y->elements() == 0) return absl::OkStatus();
  int64_t batch = x.shape()[0], channels = x.shape()[1], in_group = channels / groups;
  int64_t inner = x.elements() / (batch * channels), n = in_group * inner;
  DispatchFloating(x.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    for (int64_t r = 0; r < batch * groups; ++r) {
      const T* in = x.Data<T>().data() + r * n;
      T* out = y->MutableData<T>().data() + r * n;
      Moments m = MomentsOf(in, n);
      double inverse = 1 / std::sqrt(m.variance + epsilon);
      for (int64_t i = 0; i < n; ++i) {
        int64_t p = per_group ? r % groups : r % groups * in_group + i / inner;
        out[i] = Rounded<T>((static_cast<double>(in[i]) - m.mean) * inverse * scale[p] + bias[p]);
      }
    }
  });
  return absl::OkStatus();
}

// Before operator set 21 scale and bias had one element per group.
absl::Status Upgrade(Graph&, Node& node) {
  if (node.version < 21) node.attrs.Set("_per_group", int64_t{1});
  return absl::OkStatus();
}

absl::Status Gradient(GradientContext& g) {
  MGE_ASSIGN_OR_RETURN(const int64_t rank, g.Rank(0));
  auto grouped = [&](const Term& x) { return g.Of("Reshape", {x.id(), g.Integers({0, g.attrs().Int("num_groups"), -1})}); };
  const Normalized n(g, grouped(g.x()), {2}, g.attrs().Float("epsilon"));
  const PerChannel channels(g, rank);
  MGE_RETURN_IF_ERROR(g.Set(0, g.ReshapeLike(n.Gradient(grouped(g.dy() * channels.Wide(g.x(1)))), g.x())));
  MGE_RETURN_IF_ERROR(g.Set(1, channels.Sum(g.dy() * g.ReshapeLike(n.x, g.x()))));
  return g.Set(2, channels.Sum(g.dy()));
}

}  // namespace

MGE_OP(group_normalization) = {
    .name = "GroupNormalization",
    .doc = "Normalizes each group of channels of each sample to mean 0 and variance 1, then scales and shifts.",
    .inputs = {{"X", kFloating}, {"scale", kFloating}, {"bias", kFloating}},
    .outputs = {{"Y"}},
    .attrs = {{"epsilon", 1e-5f, "added to the variance"},
              {"num_groups", AttrType::kInt, Presence::kRequired, "the number of groups of channels"},
              {"stash_type", 1, "the element type of the statistics"},
              {"_per_group", AttrType::kInt}},  // statistics are always double
    .infer = Infer,
    .eval = Eval,
    .upgrade = Upgrade,
    .gradient = Gradient,
    .in_place = {{0, 0}},
    .since = 18,
    .examples = {"(T[2,4,3,5], T[4], T[4]) {num_groups=2}"},
};

}  // namespace mge::op_group_normalization
