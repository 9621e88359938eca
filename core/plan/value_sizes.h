// SPDX-License-Identifier: Apache-2.0
// How large the values of a graph are, before any backend is asked about them.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "core/graph/graph.h"
#include "core/plan/program.h"
#include "core/plan/room.h"

namespace mge {

class ValueSizes {
 public:
  // Of a graph whose shapes are known; it is borrowed. kInvalidTensor where a size overflows, with the value and its node.
  static absl::StatusOr<ValueSizes> Of(const Graph& graph, const PlanContext& context);

  // Whether some memory of the plan could hold it. What none can hold may still lie within a claimed group, where it takes no
  // memory; no backend is asked for a kernel that reads or writes it.
  bool Fits(ValueId v) const { return large_.empty() || v == kNone || !large_[v]; }
  bool Fit(std::span<const ValueId> values) const {
    return std::all_of(values.begin(), values.end(), [&](ValueId v) { return Fits(v); });
  }
  // kOverBudget where an output of the node, which nothing spares any more, does not fit.
  absl::Status Check(const Node& node) const;

 private:
  explicit ValueSizes(const Graph& graph) : graph_(&graph) {}

  const Graph* graph_;
  std::vector<uint64_t> bytes_ = {};  // of each value; 0 for one that takes no memory of its own
  Room room_ = {};                    // the largest memory, if one does not fit there
  std::vector<bool> large_ = {};      // of each value; empty if all fit
};

}  // namespace mge
