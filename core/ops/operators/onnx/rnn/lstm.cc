// SPDX-License-Identifier: Apache-2.0
#include "core/ops/families/lstm.h"

namespace mge::op_lstm {
namespace {

absl::Status Infer(InferContext& ctx) { return InferRecurrent(ctx, kLstmKind); }

template <typename T>
absl::Status Run(EvalContext& ctx, const Recurrent& r) {
  const bool input_forget = ctx.attrs().Int("input_forget") != 0;
  return RunRecurrent<T>(ctx, r, kLstmKind, [&](const auto& cell, const auto& step) { StepLstm(cell, step, input_forget); });
}

absl::Status Eval(EvalContext& ctx) {
  return EvalRecurrent(ctx, kLstmKind,
                       [&](auto tag, const Recurrent& r) { return Run<typename decltype(tag)::type>(ctx, r); });
}

absl::Status Gradient(GradientContext& g) { return RecurrentGradient(g, "LSTM", kLstmKind); }

}  // namespace

MGE_OP(lstm) = {
    .name = "LSTM",
    .doc = "One-layer long short-term memory, optionally with peepholes.",
    .inputs = RecurrentInputs({{"initial_c", kFloating, Arity::kOptional}, {"P", kFloating, Arity::kOptional}}),
    .outputs = RecurrentOutputs({{.name = "Y_c", .arity = Arity::kOptional}}),
    .attrs = RecurrentAttrs({{"input_forget", 0, "not 0: the forget gate is 1 - the input gate"}}),
    .infer = Infer,
    .eval = Eval,
    .upgrade = UpgradeRecurrent,
    .normalize = NormalizeRecurrent<kLstmKind>,
    .gradient = Gradient,
    .examples = {"(T[3,2,4], T[1,20,4], T[1,20,5]) {hidden_size=5} -> 3",
                 "(T[2,3,4], T[2,20,4], T[2,20,5], T[2,40], _, T[2,2,5], T[2,2,5]) {hidden_size=5, layout=1, "
                 "direction=\"bidirectional\"} -> 3",
                 "(T[4,1,3], T[1,8,3], T[1,8,2], T[1,16]) {direction=\"reverse\"}",
                 "(T[3,2,4], T[2,20,4], T[2,20,5], T[2,40], int32[2]<3,1>, T[2,2,5], T[2,2,5], T[2,15]) {hidden_size=5, "
                 "direction=\"bidirectional\", "
                 "activations=[\"HardSigmoid\",\"Relu\",\"Tanh\",\"Sigmoid\",\"Tanh\",\"Softsign\"]} -> 3"},
};

}  // namespace mge::op_lstm
