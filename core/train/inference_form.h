// SPDX-License-Identifier: Apache-2.0
// The form of a model that computes what a trained model is used for, in place of the form that trains.
#pragma once

#include "core/graph/graph.h"

namespace mge {

// Changes each BatchNormalization of the graph to use its running mean and variance, and each Dropout to drop nothing. A Dropout
// whose mode is an input of the graph stays as it is. Bodies of control flow are not changed.
void MakeInferenceForm(Graph& graph);

}  // namespace mge
