// SPDX-License-Identifier: Apache-2.0
#include "core/ops/families/movement.h"
#include "core/ops/gradient.h"
#include "core/ops/op_helpers.h"

namespace mge::op_reverse_sequence {
namespace {

struct Axes {
  int64_t batch = 1, time = 0;
};

absl::StatusOr<Axes> AxesOf(const Attributes& attrs, std::span<const int64_t> x, std::span<const int64_t> lengths) {
  Axes axes{attrs.Int("batch_axis"), attrs.Int("time_axis")};
  if (x.size() < 2) return BadNode(fmt::format("input has shape {}; it must have at least two dimensions", ShapeText(x)));
  if (!((axes.batch == 0 && axes.time == 1) || (axes.batch == 1 && axes.time == 0))) {
    return BadNode(fmt::format("batch_axis is {} and time_axis is {}; one must be 0, the other 1", axes.batch, axes.time));
  }
  MGE_RETURN_IF_ERROR(RequireShape("sequence_lens", lengths, Shape{x[axes.batch]}));
  return axes;
}

absl::Status Infer(InferContext& ctx) {
  const TensorType& x = ctx.input(0);
  if (x.has_rank && ctx.input(1).has_rank) {
    MGE_RETURN_IF_ERROR(AxesOf(ctx.attrs(), x.dims, ctx.input(1).dims).status());
  }
  ctx.SetOutput(0, x);
  return absl::OkStatus();
}

absl::Status Eval(EvalContext& ctx) {
  const Tensor& x = ctx.input(0);
  MGE_ASSIGN_OR_RETURN(Axes axes, AxesOf(ctx.attrs(), x.shape(), ctx.input(1).shape()));
  MGE_ASSIGN_OR_RETURN(Tensor * y, ctx.Output(0, x.dtype(), x.shape()));
  auto lengths = ctx.input(1).Data<int64_t>();
  const int64_t batch = x.shape()[axes.batch], time = x.shape()[axes.time];
  const int64_t block = Product(x.shape(), 2, x.rank());
  for (int64_t b = 0; b < batch; ++b) {
    if (lengths[b] < 0 || lengths[b] > time) {
      return ctx.Invalid(fmt::format("sequence_lens[{}] is {}; it must be in [0, {}]", b, lengths[b], time));
    }
    if (y->elements() == 0) continue;
    auto at = [&](int64_t t) { return (axes.batch == 0 ? b * time + t : t * batch + b) * block; };
    for (int64_t t = 0; t < time; ++t) {
      CopyElements(x, at(t < lengths[b] ? lengths[b] - 1 - t : t), *y, at(t), block);
    }
  }
  return absl::OkStatus();
}

absl::Status Gradient(GradientContext& g) {
  return g.Set(0, g.Of("ReverseSequence", {g.dy().id(), g.x(1).id()}, g.attrs()));
}

}  // namespace

MGE_OP(reverse_sequence) = {.name = "ReverseSequence",
                            .doc = "Reverses the first sequence_lens[b] steps of each sequence b of a batch.",
                            .inputs = {{"input"}, {"sequence_lens", {DType::kI64}}},
                            .outputs = {{"Y"}},
                            .attrs = {{"batch_axis", 1, "the axis of the batch"}, {"time_axis", 0, "the axis of time"}},
                            .infer = Infer,
                            .eval = Eval,
                            .gradient = Gradient,
                            .since = 10,
                            .examples = {"(T[4,3], int64[3]<1,4,2>)"}};

}  // namespace mge::op_reverse_sequence
