// SPDX-License-Identifier: Apache-2.0
// Estimates the memory that a graph's results need, to compare forms of a training step before they are planned.
#pragma once

#include <cstdint>

#include "core/graph/graph.h"

namespace mge {

// The number that stands for an unknown size, such as that of the batch.
inline constexpr int64_t kUnknownSize = 256;

// Returns the bytes of a tensor. An unknown size counts as kUnknownSize; other values than tensors as nothing.
int64_t EstimatedBytes(const Value& value);

// Returns the most bytes of results that are alive at the same time if the nodes run in their topological order. The
// graph's outputs live to the end. A node that may compute in place takes the memory of an input that nobody else reads, and a view
// that of its source. The graph's types must be inferred. Fails if the graph has a circle.
absl::StatusOr<int64_t> LivePeak(const Graph& graph);

}  // namespace mge
