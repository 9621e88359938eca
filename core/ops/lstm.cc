// SPDX-License-Identifier: Apache-2.0
#include "core/ops/recurrent.h"

namespace mge {
namespace {

constexpr std::string_view kDefaults[] = {"Sigmoid", "Tanh", "Tanh"};
constexpr RecurrentKind kKind = {.gates = 4, .activations = kDefaults, .has_cell = true};
enum Gate { kIn, kOut, kForget, kCell };

absl::Status Infer(InferContext& ctx) { return InferRecurrent(ctx, kKind); }

template <typename T>
absl::Status Run(EvalContext& ctx, const Recurrent& r) {
  using A = Compute<T>;
  const bool input_forget = ctx.attrs().Int("input_forget") != 0;
  const int64_t n = r.hidden;
  return RunRecurrent<T>(ctx, r, kKind, [&](const RecurrentCell<A>& cell, A* gates, A* h, A* c) {
    for (int gate : {kIn, kOut, kForget, kCell}) {
      for (int64_t i = 0; i < n; ++i)
        gates[gate * n + i] += cell.Recur(gate, i, h) + cell.Bias(gate, i);
    }
    // Peepholes are stored in the order in, out, forget.
    auto peep = [&](int which, int64_t i) {
      return cell.peepholes ? cell.peepholes[which * n + i] * c[i] : A(0);
    };
    for (int64_t i = 0; i < n; ++i) {
      const A in = cell.Activate(0, gates[kIn * n + i] + peep(0, i));
      const A forget =
          input_forget ? 1 - in : cell.Activate(0, gates[kForget * n + i] + peep(2, i));
      c[i] = forget * c[i] + in * cell.Activate(1, gates[kCell * n + i]);
      const A out = cell.Activate(0, gates[kOut * n + i] + peep(1, i));
      h[i] = out * cell.Activate(2, c[i]);
    }
  });
}

absl::Status Eval(EvalContext& ctx) {
  return EvalRecurrent(ctx, kKind, [&](auto tag, const Recurrent& r) {
    return Run<typename decltype(tag)::type>(ctx, r);
  });
}

}  // namespace

MGE_OP(lstm) = {
    .name = "LSTM",
    .doc = "One-layer long short-term memory, optionally with peepholes.",
    .inputs = RecurrentInputs({{"initial_c", kFloating, Arity::kOptional}, {"P", kFloating, Arity::kOptional}}),
    .outputs = RecurrentOutputs({{.name = "Y_c", .arity = Arity::kOptional}}),
    .attrs = RecurrentAttrs({{"input_forget", AttrType::kInt}}),
    .infer = Infer,
    .eval = Eval,
    .upgrade = UpgradeRecurrent,
};

}  // namespace mge
