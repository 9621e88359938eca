// SPDX-License-Identifier: Apache-2.0
// Creates the steps of a plan with their arguments, and the record of each unit for --why.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include "core/plan/host_step.h"
#include "core/plan/kernels/prepare.h"
#include "core/plan/memory/buffers.h"
#include "core/plan/memory/constants.h"
#include "core/plan/plan.h"
#include "core/plan/schedule.h"

namespace mge {

// The steps of a plan. An alias has no step, except an alias of a constant, which is copied.
struct BoundSteps {
  std::vector<Step> steps;            // in the order of the units
  std::vector<Unit> units;            // the schedule's units, then one for each MemoryPlan::output_copies
  std::unique_ptr<std::byte[]> args;  // the arguments of all steps but host steps, in one block
  std::vector<std::unique_ptr<HostStepArgs>> host_args;
  std::vector<std::shared_ptr<Communicator>> communicators;  // those of collectives
  std::vector<PlanBody> bodies;                              // bodies of control flow, in the order of units
  int reference_steps = 0;
};

// Returns the steps of a schedule. Fails if a backend cannot bind a kernel, or if a body of control flow has a fault other
// than wrong shapes, or if `stop` (nullable) is set.
absl::StatusOr<BoundSteps> BindSteps(const Graph& graph, const Schedule& schedule, const PreparedKernels& kernels,
                                     const MemoryPlan& memory, const PlanConstants& constants,
                                     const std::shared_ptr<const PlanContext>& context, const StopControl* stop);

// Binds only the units `units` and the copies of outputs `copies` (indices into MemoryPlan::output_copies), in this order. The
// result has no descriptions and no bodies. Fails like BindSteps().
absl::StatusOr<BoundSteps> BindSomeSteps(const Graph& graph, const Schedule& schedule, const PreparedKernels& kernels,
                                         const MemoryPlan& memory, const PlanConstants& constants,
                                         const std::shared_ptr<const PlanContext>& context, const StopControl* stop,
                                         std::span<const size_t> units, std::span<const size_t> copies);

}  // namespace mge
