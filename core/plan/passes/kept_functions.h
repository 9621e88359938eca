// SPDX-License-Identifier: Apache-2.0
// Function operators that backends compute whole, for PassContext::keeps_function.
#pragma once

#include <functional>

#include "core/base/status.h"
#include "core/graph/graph.h"
#include "core/plan/program.h"

namespace mge {

// Returns a function that tells whether a node of a function operator is not replaced by its body: every device has kernels of
// that operator, and each offers one for this node. As long as the shapes of its inputs are unknown, it is kept. The context
// must outlive the function, which is used by one thread.
std::function<absl::StatusOr<bool>(const Graph& graph, NodeId node)> FunctionKeeper(const PlanContext& context);

}  // namespace mge
