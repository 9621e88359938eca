// SPDX-License-Identifier: Apache-2.0
#include "core/ops/families/recurrent.h"

namespace mge::op_rnn {
namespace {

absl::Status Infer(InferContext& ctx) { return InferRecurrent(ctx, kRnnKind); }

absl::Status Eval(EvalContext& ctx) {
  return EvalRecurrent(ctx, kRnnKind, [&](auto tag, const Recurrent& r) {
    return RunRecurrent<typename decltype(tag)::type>(ctx, r, kRnnKind, [&](const auto& cell, const auto& s) {
      for (int64_t i = 0; i < r.hidden; ++i) s.gates[i] += cell.Recur(0, i, s.h) + cell.Bias(0, i);
      for (int64_t i = 0; i < r.hidden; ++i) s.h[i] = cell.Activate(0, s.gates[i]);
    });
  });
}

absl::Status Gradient(GradientContext& g) { return RecurrentGradient(g, "RNN", kRnnKind); }

}  // namespace

MGE_OP(rnn) = {
    .name = "RNN",
    .doc = "One-layer simple recurrent network: h = f(W x + R h + b).",
    .inputs = RecurrentInputs(),
    .outputs = RecurrentOutputs(),
    .attrs = RecurrentAttrs(),
    .infer = Infer,
    .eval = Eval,
    .upgrade = UpgradeRecurrent,
    .normalize = NormalizeRecurrent<kRnnKind>,
    .gradient = Gradient,
    .examples = {"(T[3,2,4], T[1,5,4], T[1,5,5]) {hidden_size=5} -> 2",
                 "(T[3,2,4], T[2,5,4], T[2,5,5], T[2,10], _, T[2,2,5]) {direction=\"bidirectional\", "
                 "activations=[\"relu\",\"Tanh\"]} -> 2"},
};

}  // namespace mge::op_rnn
