// SPDX-License-Identifier: Apache-2.0
// Recurrent networks of one layer.
#include "core/ops/families/recurrent.h"

#include "core/ops/families/lstm.h"

namespace mge::op_recurrent {
namespace {

enum Gate { kUpdate, kReset, kHidden };

template <typename T>
absl::Status RunGRU(EvalContext& ctx, const Recurrent& r) {
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

absl::Status EvalGRU(EvalContext& ctx) {
  return EvalRecurrent(ctx, kGruKind,
                       [&](auto tag, const Recurrent& r) { return RunGRU<typename decltype(tag)::type>(ctx, r); });
}

template <typename T>
absl::Status RunLSTM(EvalContext& ctx, const Recurrent& r) {
  const bool input_forget = ctx.attrs().Int("input_forget") != 0;
  return RunRecurrent<T>(ctx, r, kLstmKind, [&](const auto& cell, const auto& step) { StepLstm(cell, step, input_forget); });
}

absl::Status EvalLSTM(EvalContext& ctx) {
  return EvalRecurrent(ctx, kLstmKind,
                       [&](auto tag, const Recurrent& r) { return RunLSTM<typename decltype(tag)::type>(ctx, r); });
}

absl::Status EvalRNN(EvalContext& ctx) {
  return EvalRecurrent(ctx, kRnnKind, [&](auto tag, const Recurrent& r) {
    return RunRecurrent<typename decltype(tag)::type>(ctx, r, kRnnKind, [&](const auto& cell, const auto& s) {
      for (int64_t i = 0; i < r.hidden; ++i) s.gates[i] += cell.Recur(0, i, s.h) + cell.Bias(0, i);
      for (int64_t i = 0; i < r.hidden; ++i) s.h[i] = cell.Activate(0, s.gates[i]);
    });
  });
}

constexpr OpDef kRows[] = {
    {.name = "GRU",
     .doc = "One-layer gated recurrent unit.",
     .inputs = RecurrentInputs(),
     .outputs = RecurrentOutputs(),
     .attrs = RecurrentAttrs({{"linear_before_reset", 0, "not 0: the reset gate multiplies after the product"}}),
     .infer = [](InferContext& ctx) { return InferRecurrent(ctx, kGruKind); },
     .eval = EvalGRU,
     .upgrade = UpgradeRecurrent,
     .normalize = NormalizeRecurrent<kGruKind>,
     .gradient = [](GradientContext& g) { return RecurrentGradient(g, "GRU", kGruKind); },
     .examples =
         {"(T[3,2,4], T[1,15,4], T[1,15,5]) {hidden_size=5} -> 2",
          "(T[3,2,4], T[2,15,4], T[2,15,5], T[2,30], _, T[2,2,5]) {direction=\"bidirectional\"} -> 2",
          "(T[2,3,4], T[2,15,4], T[2,15,5], T[2,30], _, T[2,2,5]) {linear_before_reset=1, layout=1, "
          "direction=\"bidirectional\"} -> 2",
          "(T[3,2,4], T[1,15,4], T[1,15,5], T[1,30]) {hidden_size=5, linear_before_reset=1, direction=\"reverse\"} -> 2"}},
    {.name = "LSTM",
     .doc = "One-layer long short-term memory, optionally with peepholes.",
     .inputs = RecurrentInputs({{"initial_c", kFloating, Arity::kOptional}, {"P", kFloating, Arity::kOptional}}),
     .outputs = RecurrentOutputs({{.name = "Y_c", .arity = Arity::kOptional}}),
     .attrs = RecurrentAttrs({{"input_forget", 0, "not 0: the forget gate is 1 - the input gate"}}),
     .infer = [](InferContext& ctx) { return InferRecurrent(ctx, kLstmKind); },
     .eval = EvalLSTM,
     .upgrade = UpgradeRecurrent,
     .normalize = NormalizeRecurrent<kLstmKind>,
     .gradient = [](GradientContext& g) { return RecurrentGradient(g, "LSTM", kLstmKind); },
     .examples = {"(T[3,2,4], T[1,20,4], T[1,20,5]) {hidden_size=5} -> 3",
                  "(T[2,3,4], T[2,20,4], T[2,20,5], T[2,40], _, T[2,2,5], T[2,2,5]) {hidden_size=5, layout=1, "
                  "direction=\"bidirectional\"} -> 3",
                  "(T[4,1,3], T[1,8,3], T[1,8,2], T[1,16]) {direction=\"reverse\"}",
                  "(T[3,2,4], T[2,20,4], T[2,20,5], T[2,40], int32[2]<3,1>, T[2,2,5], T[2,2,5], T[2,15]) {hidden_size=5, "
                  "direction=\"bidirectional\", "
                  "activations=[\"HardSigmoid\",\"Relu\",\"Tanh\",\"Sigmoid\",\"Tanh\",\"Softsign\"]} -> 3"}},
    {.name = "RNN",
     .doc = "One-layer simple recurrent network: h = f(W x + R h + b).",
     .inputs = RecurrentInputs(),
     .outputs = RecurrentOutputs(),
     .attrs = RecurrentAttrs(),
     .infer = [](InferContext& ctx) { return InferRecurrent(ctx, kRnnKind); },
     .eval = EvalRNN,
     .upgrade = UpgradeRecurrent,
     .normalize = NormalizeRecurrent<kRnnKind>,
     .gradient = [](GradientContext& g) { return RecurrentGradient(g, "RNN", kRnnKind); },
     .examples = {"(T[3,2,4], T[1,5,4], T[1,5,5]) {hidden_size=5} -> 2",
                  "(T[3,2,4], T[2,5,4], T[2,5,5], T[2,10], _, T[2,2,5]) {direction=\"bidirectional\", "
                  "activations=[\"relu\",\"Tanh\"]} -> 2"}},
};

}  // namespace

MGE_OPS(recurrent) = kRows;

}  // namespace mge::op_recurrent
