// SPDX-License-Identifier: Apache-2.0
// Assembles a plan from the results of the stages.
#pragma once

#include <memory>
#include <vector>

#include "core/plan/bind.h"
#include "core/plan/cover.h"
#include "core/plan/kernels/prepare.h"
#include "core/plan/memory/buffers.h"
#include "core/plan/memory/constants.h"
#include "core/plan/plan.h"
#include "core/plan/segments.h"
#include "core/plan/value_records.h"

namespace mge {

// The results of the stages.
struct PlanParts {
  const Graph& graph;
  std::vector<std::string> pass_log;
  std::vector<Alternative> dropped_claims;
  PreparedKernels kernels;
  MemoryPlan memory;
  std::vector<MemoryNeed> needs;
  PlanConstants constants;
  std::vector<StateBase> states;
  BoundSteps bound;
  Segments segments;
  std::vector<StepAccess> accesses;
  std::unique_ptr<Continuation> continuation;
  ValueRecords records;
};

// Returns the plan. Computes only sums and copies of graph constants; moves everything else.
std::shared_ptr<Plan> AssemblePlan(const PlanContext& context, PlanParts parts);

}  // namespace mge
