// SPDX-License-Identifier: Apache-2.0
// Helpers of Adagrad, Adam and Momentum. The inputs are R, T, then one group of tensors each for X, G and every state.
// The outputs are one group each for the new X and the new states. All groups have the same number of tensors.
#pragma once

#include "core/ops/infer_checks.h"

namespace mge {

// Checks that the tensors after R and T form `groups` groups, and that X, G and states of one set have equal shapes.
// Sets the types of the `groups` - 1 groups of outputs.
absl::Status InferOptimizer(InferContext& ctx, int groups);

// One set: a tensor of each group.
template <typename T, int kStates>
struct OptimizerSet {
  std::span<const T> x, g;
  std::span<const T> state[kStates];
  std::span<T> new_x;
  std::span<T> new_state[kStates];
};

// Calls update(rate, step, set) for every set. The element type of a set is that of its tensors.
template <int kStates, typename Update>
absl::Status EvalOptimizer(EvalContext& ctx, Update update) {
  constexpr int kGroups = kStates + 2;
  MGE_ASSIGN_OR_RETURN(double rate, ScalarFloat("R", ctx.input(0)));
  MGE_ASSIGN_OR_RETURN(int64_t step, ScalarInt("T", ctx.input(1)));
  const int sets = (ctx.input_count() - 2) / kGroups;
  for (int s = 0; s < sets; ++s) {
    MGE_RETURN_IF_ERROR(ctx.CheckStop());
    const Tensor& x = ctx.input(2 + s);
    Tensor* out[kStates + 1] = {};
    for (int i = 0; i <= kStates; ++i) {
      MGE_ASSIGN_OR_RETURN(out[i], ctx.Output(i * sets + s, x.dtype(), x.shape()));
    }
    auto run = [&](auto tag) {
      using T = typename decltype(tag)::type;
      OptimizerSet<T, kStates> set;
      set.x = x.template Data<T>();
      set.g = ctx.input(2 + sets + s).template Data<T>();
      set.new_x = out[0]->template MutableData<T>();
      for (int i = 0; i < kStates; ++i) {
        set.state[i] = ctx.input(2 + (2 + i) * sets + s).template Data<T>();
        set.new_state[i] = out[i + 1]->template MutableData<T>();
      }
      update(rate, step, set);
    };
    if (x.dtype() == DType::kF64) {
      run(TypeTag<double>{});
    } else {
      run(TypeTag<float>{});
    }
  }
  return absl::OkStatus();
}

}  // namespace mge
