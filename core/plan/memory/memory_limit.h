// SPDX-License-Identifier: Apache-2.0
// Compares the memory needs of a plan with the memory limits of its devices, before constants are packed. If a device has no
// limit, its whole memory is the limit.
#pragma once

#include "core/plan/plan_builder.h"

namespace mge {

// Returns the device whose budget is charged for host tensors used by work on `device`.
Device& HostMemoryOf(const PlanBuilder& p, Device& device);

// Checks the limits. Must be called after AssignBuffers(). Sets plan->needs. Fails with kOverBudget, which names the planned
// peak, the largest buffers and the smallest sufficient limit.
absl::Status CheckMemoryLimits(PlanBuilder& p);

// Adds the plan's needs to `over`, the refusal of memory for the plan's constants by `budget`. Returns errors other than
// kOverBudget unchanged.
absl::Status NameConstants(absl::Status over, const Plan& plan, const Budget& budget);

// Adds the plan's needs to `over`, the refusal of memory for an arena or output of a run by `budget`. `taken` is the number
// of bytes that the run has charged to the budget before. Returns errors other than kOverBudget unchanged.
absl::Status NamePlan(absl::Status over, const Plan& plan, const Budget& budget, uint64_t taken);

// Adds the plan's needs to `over`, the refusal of `bytes` that a host step requested while it ran. The plan does not include
// them. Returns errors other than kOverBudget unchanged.
absl::Status NameDynamic(absl::Status over, const Plan& plan, const Budget& budget, uint64_t bytes);

}  // namespace mge
