// SPDX-License-Identifier: Apache-2.0
// Reverse-mode automatic differentiation of a graph.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "core/autodiff/sublinear.h"
#include "core/graph/graph.h"

namespace mge {

struct GradientOptions {
  // Computes the results of cheap nodes (IsCheap()) again where a gradient needs them, so that they need not be kept. Source:
  // MXNet's memory mirroring (MXNET_BACKWARD_DO_MIRROR), which keeps the results of products and convolutions. Has no effect
  // where that would need more memory (FindLiveResults()).
  bool mirror = false;
  // Does the same with the results that a plan chooses.
  std::optional<SublinearOptions> sublinear = {};
};

// Adds nodes that compute the gradients of `loss` by the values `wanted`, and returns these gradients in the same order; kNone
// where the loss does not depend on a value. The graph's types must be inferred. `loss` must be a floating value with one
// element. Fails with kUnsupportedFeature, which names the node, if an operator on the way has no gradient, and with
// kInvalidGraph for a loss of another type.
absl::StatusOr<std::vector<ValueId>> AddGradients(Graph& graph, ValueId loss, std::span<const ValueId> wanted,
                                                  const GradientOptions& options = {});

}  // namespace mge
