// SPDX-License-Identifier: Apache-2.0
// Estimates which results of a graph are alive when, to compare forms of a training step before they are planned.
#pragma once

#include <cstdint>
#include <vector>

#include "core/graph/graph.h"

namespace mge {

// The number that stands for an unknown size, such as that of the batch.
inline constexpr int64_t kUnknownSize = 256;

// Returns the bytes of a tensor. An unknown size counts as kUnknownSize; other values than tensors as nothing.
int64_t EstimatedBytes(const Value& value);

// The results that are alive while each node of a graph runs, in the topological order of the nodes. The graph's outputs live to
// the end. A node that may compute in place takes the memory of an input that nobody else reads, and a view that of its source.
struct LiveResults {
  static constexpr size_t kNowhere = SIZE_MAX;

  std::vector<NodeId> order;
  std::vector<int64_t> bytes;   // by place in `order`: alive while the node runs
  std::vector<ValueId> memory;  // by value: the value whose memory it has
  std::vector<size_t> first;    // by value: the place of its producer; kNowhere without one
  std::vector<size_t> last;     // by value with memory of its own: the place of the last reader; order.size() for an output
  size_t at = 0;                // the first place with the most bytes
  int64_t peak = 0;             // these bytes
};

// Returns the live results of a graph whose types are inferred. Fails if the graph has a cycle.
absl::StatusOr<LiveResults> FindLiveResults(const Graph& graph);

}  // namespace mge
