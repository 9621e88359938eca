// SPDX-License-Identifier: Apache-2.0
// Optimizers: rules that change parameters by their gradients.
#pragma once

#include <span>

#include "core/base/status.h"
#include "core/graph/graph.h"

namespace mge {

struct ReplicaExchange;  // core/train/training.h
struct TrainingOptions;  // the same

struct TrainedValue {
  ValueId parameter;
  ValueId gradient;      // of the parameter's type, or float32
  bool divided = false;  // the gradient is this replica's part, a vector
};

struct StepGuards {
  ValueId loss_scale = kNone;   // the factor of the loss whose gradients are given, which AddLossScale() added; kNone: 1
  ValueId finite_loss = kNone;  // a bool: if it is false, the step changes nothing; kNone: it changes everything
};

// Adds the nodes that update the parameters and the optimizer's states. A state is named after its parameter. `rate` is the
// learning rate, a float32 scalar. Requires: `options.optimizer` is a row of mge/optimizers.hpp.
//
// With TrainingOptions::average_decay, the state PARAMETER.average follows each parameter, in float32 if that has 16 bits. With
// keep_gradients, PARAMETER.gradient is the gradient of the last update, before it was clipped.
//
// A parameter of 16 bits has a float32 copy, the state `PARAMETER.master`, which is updated. The parameter is its rounding.
//
// The gradients are divided by the scale of the loss. If one of them is not finite, the step changes no parameter and no state
// of the optimizer, and halves the scale. After 2000 steps without such a gradient, the scale is doubled. Without a scale, and
// with on_nan = "skip", such a step changes nothing.
//
// With ReplicaExchange::gather, divides the optimizer's states and the float32 copies. Averages and kept gradients are whole.
absl::Status AddOptimizer(Graph& graph, std::span<const TrainedValue> values, ValueId rate, const StepGuards& guards,
                          const TrainingOptions& options, const ReplicaExchange& exchange);

// Returns whether the update of an element depends on no other element of its parameter.
bool UpdatesElementsAlone(const TrainingOptions& options);

// Returns whether a replica that updates a part of the parameters needs all elements of the gradients, even without a scale of the
// loss: for their norm, or for states that stay whole.
bool NeedsWholeGradients(const TrainingOptions& options);

// Adds the factor of the loss, a float32 scalar that begins with 65536: the gradients of float16 are not lost as too small.
ValueId AddLossScale(Graph& graph);

// Makes a parameter, a constant, the state with its average, in float32 if it has 16 bits.
void UseAverage(Graph& graph, ValueId parameter);

// Adds a node that writes `value` to the memory of `target`.
void AddAssign(Graph& graph, ValueId target, ValueId value);

}  // namespace mge
