// SPDX-License-Identifier: Apache-2.0
#include "core/ops/families/recurrent.h"

namespace mge::op_rnn {
namespace {

constexpr std::string_view kDefaults[] = {"Tanh"};
constexpr RecurrentKind kKind = {.gates = 1, .activations = kDefaults};

absl::Status Infer(InferContext& ctx) { return InferRecurrent(ctx, kKind); }

absl::Status Eval(EvalContext& ctx) {
  return EvalRecurrent(ctx, kKind, [&](auto tag, const Recurrent& r) {
    return RunRecurrent<typename decltype(tag)::type>(ctx, r, kKind, [&](const auto& cell, const auto& s) {
      for (int64_t i = 0; i < r.hidden; ++i) s.gates[i] += cell.Recur(0, i, s.h) + cell.Bias(0, i);
      for (int64_t i = 0; i < r.hidden; ++i) s.h[i] = cell.Activate(0, s.gates[i]);
    });
  });
}

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
    .examples = {"(T[3,2,4], T[1,5,4], T[1,5,5]) {hidden_size=5} -> 2"},
};

}  // namespace mge::op_rnn
