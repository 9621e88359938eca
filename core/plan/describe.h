// SPDX-License-Identifier: Apache-2.0
// Describes a unit of a plan for --why and for reports: nodes, operands, kernel, work, and reasons.
#pragma once

#include <string>

#include "core/plan/plan.h"
#include "core/plan/schedule.h"

namespace mge {

// Returns the description of a unit. `in_place` is its element of MemoryPlan::in_place.
Unit DescribeUnit(const Graph& graph, const Schedule& schedule, const PlannedUnit& planned, const mge_prepared& prepared,
                  const std::string& in_place);

}  // namespace mge
