// SPDX-License-Identifier: Apache-2.0
// Shapes of which only some sizes are known, as exporters compute them: Concat(Shape(x)[0], Shape(x)[1], 8, 64).
//
// A later Reshape to such a shape has a known number of heads and a known size of a head, although the batch and the length are unknown.
// Fusions and the bodies of operators need those.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "core/ops/op.h"

namespace mge {

// The elements of small vectors and scalars of integers, where some are unknown. Not thread-safe.
class PartialSizes {
 public:
  // Learns the elements of the node's output, and returns what is known of the shape of its output: a shape with kUnknownDim, or none.
  // `known`, by value, has the tensors whose elements are all known. Call it for the nodes in topological order.
  std::optional<Shape> Learn(const Graph& graph, const Node& node, std::span<const Tensor> known);

 private:
  static constexpr int64_t kUnknown = INT64_MIN;
  // Returns the elements of a value, or none if nothing is known.
  std::optional<Ints> ElementsOf(const Graph& graph, ValueId v, std::span<const Tensor> known) const;
  std::optional<Ints> ElementsOfOutput(const Graph& graph, const Node& node, std::span<const Tensor> known) const;

  std::vector<Ints> elements_;  // by value; empty: nothing is known
};

}  // namespace mge
