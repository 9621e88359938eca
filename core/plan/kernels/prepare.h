// SPDX-License-Identifier: Apache-2.0
// Prepares the kernels of a schedule, which sets their exact workspace, packed forms and state.
//
// An estimate of the workspace is not enough to place buffers, so this stage runs before AssignBuffers(). Algorithm: calls
// prepare() once per kernel or reorder, on the compute pool. If another plan of the session has such a kernel for other
// shapes, derives the kernel from it (kernel_families.h). Results and errors are used in the order of the units, so they do
// not depend on the threads. If the backend returns MGE_UNIMPLEMENTED, adds the kernel to PlanContext::unable. The caller
// then covers the graph again; CandidatesOf() leaves out the kernels that were added. Each attempt adds at least one kernel,
// so the attempts end.
#pragma once

#include <optional>
#include <vector>

#include "core/kernel/kernel.h"
#include "core/plan/schedule.h"

namespace mge {

// The kernel of one unit.
struct PreparedKernel {
  mge_prepared prepared = {};  // zero for a unit without a kernel
  uint32_t state_index = 0;    // index into PreparedKernels::states if prepared.has_state
};

// The kernels of a schedule.
struct PreparedKernels {
  std::vector<PreparedKernel> units;  // by unit
  std::vector<KernelHandle> handles;
  int rebound = 0;                  // those derived from a kernel for other shapes
  std::vector<mge_kernel*> states;  // kernels that need a state per instance
  std::vector<const mge_kernel_api*> state_apis;
};

// Creates the kernel of a unit for `problem`: from one for other shapes if the session has one, which sets `rebound`. Fails like
// PrepareKernel().
absl::StatusOr<KernelHandle> MakeKernel(const PlanContext& context, const PlannedUnit& unit, const mge_problem& problem,
                                        mge_prepared& prepared, bool& rebound);

// Returns the kernels of the schedule, or nullopt if some cannot be prepared. Returns other errors with the place of the
// node; if there are several, that of the first unit. Fails if `stop` (nullable) is set.
absl::StatusOr<std::optional<PreparedKernels>> PrepareKernels(const Graph& graph, const Schedule& schedule,
                                                              const PlanContext& context, const StopControl* stop);

}  // namespace mge
