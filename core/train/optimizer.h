// SPDX-License-Identifier: Apache-2.0
// Optimizers: rules that change parameters by their gradients.
#pragma once

#include <span>

#include "core/graph/graph.h"

namespace mge {

struct TrainingOptions;  // core/train/training.h

struct TrainedValue {
  ValueId parameter;
  ValueId gradient;  // of the parameter's type
};

// Adds the nodes that update the parameters and the optimizer's states. A state is named after its parameter. `rate` is the
// learning rate, a float32 scalar.
void AddOptimizer(Graph& graph, std::span<const TrainedValue> values, ValueId rate, const TrainingOptions& options);

// Adds a node that writes `value` to the memory of `target`.
void AddAssign(Graph& graph, ValueId target, ValueId value);

}  // namespace mge
