// SPDX-License-Identifier: Apache-2.0
#include "core/ops/families/recurrent.h"

namespace mge::op_gru {
namespace {

enum Gate { kUpdate, kReset, kHidden };

absl::Status Infer(InferContext& ctx) { return InferRecurrent(ctx, kGruKind); }

template <typename T>
absl::Status Run(EvalContext& ctx, const Recurrent& r) {
  using A = Compute<T>;
  const bool linear_before_reset = ctx.attrs().Int("linear_before_reset") != 0;
  const int64_t n = r.hidden;
  MGE_ASSIGN_OR_RETURN(Tensor scratch, Scratch<A>(ctx, n));
  A* gated = scratch.template MutableData<A>().data();
  return RunRecurrent<T>(ctx, r, kGruKind, [&](const RecurrentCell<A>& cell, const RecurrentStep<A>& step) {
    A *gates = step.gates, *h = step.h;
    for (int gate : {kUpdate, kReset}) {
      for (int64_t i = 0; i < n; ++i) {
        A& value = gates[gate * n + i];
        value = cell.Activate(0, value + cell.Recur(gate, i, h) + cell.Bias(gate, i));
      }
    }
    const A* update = gates + kUpdate * n;
    const A* reset = gates + kReset * n;
    A* hidden = gates + kHidden * n;
    for (int64_t i = 0; i < n; ++i) gated[i] = reset[i] * h[i];
    for (int64_t i = 0; i < n; ++i) {
      hidden[i] += linear_before_reset ? reset[i] * (cell.Recur(kHidden, i, h) + cell.Bias(kHidden, i))
                                       : cell.Recur(kHidden, i, gated) + cell.Bias(kHidden, i);
    }
    for (int64_t i = 0; i < n; ++i) h[i] = (1 - update[i]) * cell.Activate(1, hidden[i]) + update[i] * h[i];
  });
}

absl::Status Eval(EvalContext& ctx) {
  return EvalRecurrent(ctx, kGruKind,
                       [&](auto tag, const Recurrent& r) { return Run<typename decltype(tag)::type>(ctx, r); });
}

absl::Status Gradient(GradientContext& g) { return RecurrentGradient(g, "GRU", kGruKind); }

}  // namespace

MGE_OP(gru) = {
    .name = "GRU",
    .doc = "One-layer gated recurrent unit.",
    .inputs = RecurrentInputs(),
    .outputs = RecurrentOutputs(),
    .attrs = RecurrentAttrs({{"linear_before_reset", 0, "not 0: the reset gate multiplies after the product"}}),
    .infer = Infer,
    .eval = Eval,
    .upgrade = UpgradeRecurrent,
    .normalize = NormalizeRecurrent<kGruKind>,
    .gradient = Gradient,
    .examples =
        {"(T[3,2,4], T[1,15,4], T[1,15,5]) {hidden_size=5} -> 2",
         "(T[3,2,4], T[2,15,4], T[2,15,5], T[2,30], _, T[2,2,5]) {direction=\"bidirectional\"} -> 2",
         "(T[2,3,4], T[2,15,4], T[2,15,5], T[2,30], _, T[2,2,5]) {linear_before_reset=1, layout=1, "
         "direction=\"bidirectional\"} -> 2",
         "(T[3,2,4], T[1,15,4], T[1,15,5], T[1,30]) {hidden_size=5, linear_before_reset=1, direction=\"reverse\"} -> 2"},
};

}  // namespace mge::op_gru
