// SPDX-License-Identifier: Apache-2.0
// Creates the programs within a plan: the bodies of control flow, and the continuation.
#pragma once

#include <memory>

#include "core/plan/cover.h"
#include "core/plan/host_step.h"
#include "core/plan/memory/buffers.h"
#include "core/plan/plan.h"
#include "core/plan/schedule.h"

namespace mge {

// Returns the program of a body of a control-flow node. Captures that are constants in `graph` become constants of the body.
// If the body's nodes do not fit the shapes, the program holds the error, and only a run that enters the body fails. Fails if
// `stop` (nullable) is set.
absl::StatusOr<BodyProgram> MakeBody(const Graph& graph, const Graph& body, const Node& node,
                                     const std::shared_ptr<const PlanContext>& context, const StopControl* stop);

// Returns the program of the deferred nodes with the values that it reads, or nullptr if there are no deferred nodes.
absl::StatusOr<std::unique_ptr<Continuation>> MakeContinuation(const Graph& graph, const Cover& cover,
                                                               const Schedule& schedule, const MemoryPlan& memory,
                                                               const std::shared_ptr<const PlanContext>& context,
                                                               const StopControl* stop);

}  // namespace mge
