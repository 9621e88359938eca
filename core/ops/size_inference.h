// SPDX-License-Identifier: Apache-2.0
// Type inference that can be repeated for other sizes of the inputs of a graph. Algorithm: infer_types.cc.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "core/ops/op.h"

namespace mge {

// The types, known values and attributes of a graph for some sizes of its inputs. SetInputs() visits only the nodes that a
// size reaches, which takes microseconds where inference of the whole graph takes milliseconds. Not thread-safe.
class SizeInference {
 public:
  // `pattern` has the types and attributes that hold for all sizes: its passes have run with unknown sizes. Infers nothing yet.
  explicit SizeInference(std::shared_ptr<const Graph> pattern);
  ~SizeInference();
  SizeInference(const SizeInference&) = delete;
  SizeInference& operator=(const SizeInference&) = delete;

  // Sets the shapes of the inputs, in the order of graph().inputs(). Infers again what depends on sizes that changed since the
  // last call; the first call infers everything. After an error, the next call infers everything again.
  absl::Status SetInputs(std::span<const Shape> shapes, const StopCheck& stop);

  // The graph with the types and attributes of the last call. It has the nodes and values of the pattern.
  const Graph& graph() const { return sized_; }
  // The elements of each value that follow from the sizes alone; undefined for others.
  const std::vector<Tensor>& known() const;
  // Values whose type or known elements the last call changed, and nodes whose attributes it wrote again.
  const std::vector<ValueId>& changed_values() const { return changed_values_; }
  const std::vector<NodeId>& changed_nodes() const { return changed_nodes_; }

 private:
  struct State;

  const std::shared_ptr<const Graph> pattern_;
  Graph sized_;
  std::unique_ptr<State> state_;  // nullptr: the next call infers everything
  std::vector<ValueId> changed_values_;
  std::vector<NodeId> changed_nodes_;
};

}  // namespace mge
