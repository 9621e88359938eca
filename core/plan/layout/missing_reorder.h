// SPDX-License-Identifier: Apache-2.0
// Drops candidates whose layouts the backend cannot convert: a plan with such a candidate could not be completed.
#pragma once

#include <vector>

#include "core/graph/graph.h"
#include "core/plan/cover.h"
#include "core/plan/layout/layout_choice.h"
#include "core/plan/layout/reorder.h"
#include "core/plan/plan_context.h"

namespace mge {

// Adds to context.caches->unable each chosen candidate that needs a reorder which its backend does not offer, and logs a
// warning for it. The layouts of groups on other devices, of host steps and of the graph's inputs and outputs are plain.
// The caller must choose again if it added one.
void DropWithoutReorder(const Graph& graph, const Cover& cover, const std::vector<GroupChoice>& choices,
                        const PlanContext& context, ReorderCosts& reorders);

}  // namespace mge
