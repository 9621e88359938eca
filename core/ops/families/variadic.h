// SPDX-License-Identifier: Apache-2.0
// Helpers of the operators with any number of broadcast inputs.
#pragma once

#include "core/ops/families/binary.h"
#include "core/ops/infer_checks.h"

namespace mge {

inline absl::Status UpgradeVariadic(Graph&, Node& node) {
  if (node.version < 6) node.attrs.Remove("consumed_inputs");
  return absl::OkStatus();
}

// Computes y = finish(f(f(x0, x1), x2)...) in the compute type.
template <typename Dispatch, typename F, typename Finish = std::identity>
absl::Status EvalVariadic(EvalContext& ctx, Dispatch dispatch, F f, Finish finish = {}) {
  const Tensor& first = ctx.input(0);
  Shape shape = first.shape();
  for (int i = 1; i < ctx.input_count(); ++i) {
    if (ctx.input(i).dtype() != first.dtype()) return ctx.Invalid("inputs have different types");
    MGE_ASSIGN_OR_RETURN(shape, BroadcastShapes(shape, ctx.input(i).shape()));
  }
  MGE_ASSIGN_OR_RETURN(Tensor * y, ctx.Output(0, first.dtype(), std::move(shape)));
  absl::Status status;
  bool known = dispatch(first.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    using C = Compute<T>;
    absl::StatusOr<Tensor> scratch = Scratch<C>(ctx, y->elements());
    if (!scratch.ok()) {
      status = scratch.status();
      return;
    }
    std::span<C> sum = scratch->template MutableData<C>();
    for (int i = 0; i < ctx.input_count(); ++i) {
      auto in = ctx.input(i).template Data<T>();
      ForBroadcast(y->shape(), ctx.input(i).shape(), y->shape(), [&](int64_t out, int64_t, int64_t from) {
        C v = static_cast<C>(in[from]);
        sum[out] = i == 0 ? v : static_cast<C>(f(sum[out], v));
      });
    }
    auto out = y->MutableData<T>();
    for (size_t i = 0; i < out.size(); ++i) out[i] = static_cast<T>(finish(sum[i]));
  });
  return known ? status : ctx.Unsupported(std::string(DTypeName(first.dtype())));
}

}  // namespace mge
