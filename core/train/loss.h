// SPDX-License-Identifier: Apache-2.0
// Losses: how far a model's output is from the labels.
#pragma once

#include <string>
#include <string_view>

#include "core/graph/graph.h"

namespace mge {

// A loss: the quotient of two scalars of float32 or float64.
struct AddedLoss {
  ValueId sum;     // over all elements or labels that count
  ValueId count;   // their number, of the type of `sum`
  ValueId labels;  // a new input of the graph
};

struct TrainingOptions;  // core/train/training.h

// Adds the parts of the loss of an output, and the labels as an input. The loss must not be "output". A cross-entropy of the output of a Softmax or Sigmoid uses the scores before it, and the dimension of the Softmax as
// that of the classes. Fails with kBadInput if the loss does not fit the output's type.
absl::StatusOr<AddedLoss> AddLoss(Graph& graph, ValueId output, const TrainingOptions& options);

}  // namespace mge
