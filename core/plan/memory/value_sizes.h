// SPDX-License-Identifier: Apache-2.0
// The sizes of the values of a graph. They are checked before any backend is asked about the graph.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "core/graph/graph.h"
#include "core/plan/memory/memory_capacity.h"
#include "core/plan/plan_context.h"

namespace mge {

// The sizes of one graph's values.
class ValueSizes {
 public:
  // Computes the sizes of all values whose shapes are known. The graph must outlive the result. Fails with kInvalidTensor,
  // which names the value and its node, if a size overflows.
  static absl::StatusOr<ValueSizes> Of(const Graph& graph, const PlanContext& context);

  // Returns true if some memory of the plan could hold the value. A larger value may still be inside of a claimed group,
  // where it takes no memory. No kernel may read or write it.
  bool Fits(ValueId v) const { return large_.empty() || v == kNone || !large_[v]; }
  bool Fit(std::span<const ValueId> values) const {
    return std::all_of(values.begin(), values.end(), [&](ValueId v) { return Fits(v); });
  }
  // Fails with kOverBudget if an output of the node does not fit.
  absl::Status Check(const Node& node) const;

 private:
  explicit ValueSizes(const Graph& graph) : graph_(&graph) {}

  const Graph* graph_;
  std::vector<uint64_t> bytes_ = {};  // bytes of each value; 0 for one that has no memory of its own
  MemoryCapacity capacity_ = {};      // the largest memory; set only if a value may not fit
  std::vector<bool> large_ = {};      // true for each value that does not fit; empty if all fit
};

}  // namespace mge
