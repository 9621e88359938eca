// SPDX-License-Identifier: Apache-2.0
// Finds small nodes that the core computes in place of a device (plan.host_compute).
//
// A kernel for a few elements costs a launch and copies. If all inputs are in host memory already, the core computes such a
// node in less time.
#pragma once

#include <span>
#include <vector>

#include "core/graph/graph.h"
#include "core/plan/plan.h"

namespace mge {

// The most elements of a value that the core computes: MegEngine's limit, its largest rank.
inline constexpr int64_t kHostComputeElements = 7;

// Returns whether the core may compute a value of this type: a tensor of at most kHostComputeElements elements.
bool FitsHostCompute(ValueKind kind, const TensorType& type);

// Returns, by NodeId, which nodes the core can compute: elementwise ones whose inputs and outputs have at most
// kHostComputeElements elements, and whose inputs are in host memory at that time. These are constants, inputs of the graph
// that the caller provides in host memory, and results of the core. `order` are the nodes in topological order.
std::vector<bool> HostComputable(const Graph& graph, const IoPlaces& places, std::span<const NodeId> order);

}  // namespace mge
