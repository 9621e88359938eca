// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "core/ops/families/optimizer.h"

namespace mge::op_adam {
namespace {

absl::Status Infer(InferContext& ctx) { return InferOptimizer(ctx, 4); }

absl::Status Eval(EvalContext& ctx) {
  const double alpha = ctx.attrs().Float("alpha"), beta = ctx.attrs().Float("beta");
  const double epsilon = ctx.attrs().Float("epsilon");
  const double norm = ctx.attrs().Float("norm_coefficient"), post = ctx.attrs().Float("norm_coefficient_post");
  return EvalOptimizer<2>(ctx, [&](double rate, int64_t step, auto& set) {
    const double t = static_cast<double>(step);
    const double adjusted = step > 0 ? rate * std::sqrt(1 - std::pow(beta, t)) / (1 - std::pow(alpha, t)) : rate;
    for (size_t i = 0; i < set.x.size(); ++i) {
      const double x = set.x[i], g = norm * x + set.g[i];
      const double v = alpha * set.state[0][i] + (1 - alpha) * g;
      const double h = beta * set.state[1][i] + (1 - beta) * g * g;
      set.new_x[i] = (1 - post) * (x - adjusted * v / (std::sqrt(h) + epsilon));
      set.new_state[0][i] = v;
      set.new_state[1][i] = h;
    }
  });
}

}  // namespace

MGE_OP(adam) = {
    .name = "Adam",
    .domain = "ai.onnx.preview.training",
    .doc =
        "One step of Adam. Inputs: R, T, all X, all G, all V, all H. Outputs: all new X, all "
        "new V, all new H.",
    .inputs = {{"R", {DType::kF32, DType::kF64}},
               {"T", {DType::kI64}},
               {"inputs", {DType::kF32, DType::kF64}, Arity::kVariadic}},
    .outputs = {{.name = "outputs", .arity = Arity::kVariadic}},
    .attrs = {{"alpha", 0.9f, "the decay of the mean"},
              {"beta", 0.999f, "the decay of the mean square"},
              {"epsilon", 1e-6f, "added to the root of the mean square"},
              {"norm_coefficient", 0.0f, "the factor of the regularization"},
              {"norm_coefficient_post", 0.0f, "the factor of the regularization after the step"}},
    .infer = Infer,
    .eval = Eval,
    .in_place = {{0, 2}},
    .examples = {"(T[]<0.1>, int64[]<1>, T[3,5], T[3,5], T[3,5], T[3,5]@0:1) {norm_coefficient=0.1} -> 3"},
};

}  // namespace mge::op_adam
