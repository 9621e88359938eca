// SPDX-License-Identifier: Apache-2.0
// A graph for a range of sizes of its inputs: the passes run once, and the same nodes compute all sizes.
//
// Passes decide by sizes: they fold Shape of a static value, and remove a Slice of everything. A plan for one size may do so;
// nodes for a range must not depend on one size. Algorithm:
//   1. Runs the passes on the graph with unknown sizes. What they do holds for every size.
//   2. For given sizes infers all types, and the elements that follow from sizes (size_inference.h). Nodes that only compute
//      such elements (shape arithmetic) become constants.
//   3. For other sizes infers only what changes. Types, attributes and constants change; nodes and values stay.
#pragma once

#include <memory>
#include <set>
#include <span>
#include <vector>

#include "core/ops/size_inference.h"
#include "core/plan/ranges/range_pattern.h"

namespace mge {

// A graph whose values have the types of the sizes set last. Its nodes and values keep their addresses. Not thread-safe.
class RangeGraph {
 public:
  explicit RangeGraph(std::shared_ptr<const RangePattern> pattern);

  // Sets the sizes of the inputs. Returns false if the nodes, or the layouts chosen for the first sizes, cannot serve these: a
  // type or a constant stays unknown, or a value has another rank, or a size other than 1 where it had 1, or the sizes select
  // other branches than the pattern's. Fails if `stop`
  // (nullable) is set, or if the sizes are wrong for the model. After both, other sizes may be set.
  absl::StatusOr<bool> SetSizes(std::span<const InputType> inputs, const StopControl* stop);

  const Graph& graph() const { return graph_; }
  // The values whose type or constant the last SetSizes() changed.
  const std::vector<ValueId>& changed_values() const { return inference_.changed_values(); }
  // Returns, by value, whether its sizes may differ between the sizes of a range.
  std::vector<bool> VaryingValues() const;
  // The results of the passes.
  const SpecialisedGraph& passed() const { return pattern_->passed; }

 private:
  // Makes constants of the known values, and removes the conditions of branches and the nodes that nothing reads.
  void Fold();

  const std::shared_ptr<const RangePattern> pattern_;
  SizeInference inference_;
  Graph graph_;
  std::vector<Shape> first_dims_;  // by value: for the first sizes
  std::set<ValueId> unfit_;        // values that these nodes cannot compute for the sizes set last
  bool folded_ = false;
};

}  // namespace mge
