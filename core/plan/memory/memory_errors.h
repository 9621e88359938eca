// SPDX-License-Identifier: Apache-2.0
// Errors for a refusal of memory: they name the plan's needs, the limit and the smallest sufficient limit.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "core/base/status.h"
#include "core/plan/memory/memory_capacity.h"
#include "core/plan/plan.h"

namespace mge {

// Returns the sum of a plan's needs of one budget.
uint64_t PeakOf(const MemoryNeed& need);

// Returns a text with the peak, its parts and the largest buffers. `held` is the number of bytes in use.
std::string PeakText(const MemoryNeed& need, const MemoryCapacity& capacity, uint64_t held);

// Returns a sentence that names the smallest sufficient limit. A pool of the backend's own may take more than is requested,
// so the sentence then gives a lower bound only.
std::string LeastLimit(Device& device, uint64_t least);

// Adds a plan's needs to `over`, the refusal of memory for the plan's constants by `budget`. Returns errors other than
// kOverBudget unchanged.
absl::Status NameConstants(absl::Status over, std::span<const MemoryNeed> needs, const Budget& budget);

// Adds the plan's needs to `over`, the refusal of memory for an arena or output of a run by `budget`. `taken` is the number
// of bytes that the run has charged to the budget before. Returns errors other than kOverBudget unchanged.
absl::Status NamePlan(absl::Status over, const Plan& plan, const Budget& budget, uint64_t taken);

// Adds the plan's needs to `over`, the refusal of `bytes` that a host step requested while it ran. The plan does not include
// them. Returns errors other than kOverBudget unchanged.
absl::Status NameDynamic(absl::Status over, const Plan& plan, const Budget& budget, uint64_t bytes);

}  // namespace mge
