// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "core/ops/families/optimizer.h"

namespace mge::op_adagrad {
namespace {

absl::Status Infer(InferContext& ctx) { return InferOptimizer(ctx, 3); }

absl::Status Eval(EvalContext& ctx) {
  const double decay = ctx.attrs().Float("decay_factor"), epsilon = ctx.attrs().Float("epsilon");
  const double norm = ctx.attrs().Float("norm_coefficient");
  return EvalOptimizer<1>(ctx, [&](double rate, int64_t step, auto& set) {
    const double adjusted = rate / (1 + static_cast<double>(step) * decay);
    for (size_t i = 0; i < set.x.size(); ++i) {
      const double x = set.x[i], g = norm * x + set.g[i];
      const double h = set.state[0][i] + g * g;
      set.new_x[i] = x - adjusted * g / (std::sqrt(h) + epsilon);
      set.new_state[0][i] = h;
    }
  });
}

}  // namespace

MGE_OP(adagrad) = {
    .name = "Adagrad",
    .domain = "ai.onnx.preview.training",
    .doc = "One step of Adagrad. Inputs: R, T, all X, all G, all H. Outputs: all new X, all new H.",
    .inputs = {{"R", {DType::kF32, DType::kF64}},
               {"T", {DType::kI64}},
               {"inputs", {DType::kF32, DType::kF64}, Arity::kVariadic}},
    .outputs = {{.name = "outputs", .arity = Arity::kVariadic}},
    .attrs = {{"decay_factor", 0.0f, "how fast the rate falls"},
              {"epsilon", 1e-6f, "added to the root of the mean square"},
              {"norm_coefficient", 0.0f, "the factor of the regularization"}},
    .infer = Infer,
    .eval = Eval,
    .in_place = {{0, 2}},
    .examples =
        {"(T[]<0.1>, int64[]<1>, T[3,5], T[3,5], T[3,5]@0:1) {norm_coefficient=0.1, epsilon=0.001, decay_factor=0.1} -> 2"},
};

}  // namespace mge::op_adagrad
