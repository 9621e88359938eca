// SPDX-License-Identifier: Apache-2.0
// Compares the memory needs of a plan with the memory limits of its devices, before constants are packed. If a device has no
// limit, its whole memory is the limit.
#pragma once

#include <functional>
#include <vector>

#include "core/plan/kernels/prepare.h"
#include "core/plan/memory/buffers.h"
#include "core/plan/plan.h"
#include "core/plan/schedule.h"

namespace mge {

// Returns the plan's needs, one per budget. `denied_bytes` are the bytes of constants that were not folded for lack of
// memory. While they do not fit, calls `reclaim_memory` and tries again, until it returns false (it released nothing). Fails
// with kOverBudget, which names the planned peak, the largest buffers and the smallest sufficient limit.
absl::StatusOr<std::vector<MemoryNeed>> CheckMemoryLimits(const Graph& graph, const Cover& cover, const Schedule& schedule,
                                                          const PreparedKernels& kernels, const MemoryPlan& memory,
                                                          const PlanContext& context, int64_t denied_bytes,
                                                          const std::function<bool()>& reclaim_memory);

}  // namespace mge
