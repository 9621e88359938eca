// SPDX-License-Identifier: Apache-2.0
#include "core/ops/families/optimizer.h"

namespace mge::op_momentum {
namespace {

absl::Status Infer(InferContext& ctx) {
  MGE_RETURN_IF_ERROR(ReadChoice(ctx.attrs(), "mode", {"standard", "nesterov"}).status());
  return InferOptimizer(ctx, 3);
}

absl::Status Eval(EvalContext& ctx) {
  const double alpha = ctx.attrs().Float("alpha"), beta = ctx.attrs().Float("beta");
  const double norm = ctx.attrs().Float("norm_coefficient");
  const bool nesterov = ctx.attrs().Text("mode") == "nesterov";
  return EvalOptimizer<1>(ctx, [&](double rate, int64_t step, auto& set) {
    const double adjusted = step > 0 ? beta : 1;  // the first step uses the full gradient
    for (size_t i = 0; i < set.x.size(); ++i) {
      const double x = set.x[i], g = norm * x + set.g[i];
      const double v = alpha * set.state[0][i] + adjusted * g;
      set.new_x[i] = x - rate * (nesterov ? g + alpha * v : v);
      set.new_state[0][i] = v;
    }
  });
}

}  // namespace

MGE_OP(momentum) = {
    .name = "Momentum",
    .domain = "ai.onnx.preview.training",
    .doc =
        "One step of gradient descent with momentum. Inputs: R, T, all X, all G, all V. "
        "Outputs: all new X, all new V.",
    .inputs = {{"R", {DType::kF32, DType::kF64}},
               {"T", {DType::kI64}},
               {"inputs", {DType::kF32, DType::kF64}, Arity::kVariadic}},
    .outputs = {{.name = "outputs", .arity = Arity::kVariadic}},
    .attrs = {{"alpha", AttrType::kFloat, Presence::kRequired, "the decay of the velocity"},
              {"beta", AttrType::kFloat, Presence::kRequired, "the factor of a gradient"},
              {"mode", AttrType::kText, Presence::kRequired, "standard or nesterov"},
              {"norm_coefficient", AttrType::kFloat, Presence::kRequired, "the factor of the regularization"}},
    .infer = Infer,
    .eval = Eval,
    .in_place = {{0, 2}},
    .examples = {"(T[]<0.1>, int64[]<1>, T[3,5], T[3,5], T[3,5]) {alpha=0.9, beta=0.5, mode=\"standard\", "
                 "norm_coefficient=0.1} -> 2"},
};

}  // namespace mge::op_momentum
