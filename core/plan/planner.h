// SPDX-License-Identifier: Apache-2.0
// Planning: runs the stages of planning on a graph.
#pragma once

#include <functional>
#include <memory>
#include <span>

#include "core/plan/kernels/choose.h"
#include "core/plan/kernels/prepare.h"
#include "core/plan/memory/buffers.h"
#include "core/plan/memory/constants.h"
#include "core/plan/passes/specialise.h"
#include "core/plan/schedule.h"

namespace mge {

// Releases memory of other plans. Returns false if it released nothing.
using ReclaimMemory = std::function<bool()>;

// The results of the stages that plans for other sizes use again. The graph must outlive it.
struct PlanStages {
  ChosenKernels chosen;
  Schedule schedule;  // points into `chosen`
  PreparedKernels kernels;
  MemoryPlan memory;
  PlanConstants constants;  // only the slots
};

// Returns the plan of a graph whose inputs have static types and after all passes. If the plan does not fit into memory, calls
// `reclaim_memory` and tries again, until it fits or that returns false. `denied_bytes` is
// SpecialisedGraph::denied_bytes. Sets `stages` if it is not nullptr. `varies` is that of CoverGraph().
absl::StatusOr<std::shared_ptr<Plan>> PlanGraph(const Graph& graph, std::vector<std::string> pass_log, int64_t denied_bytes,
                                                const IoPlaces& places, const std::shared_ptr<const PlanContext>& context,
                                                const StopControl* stop, const ReclaimMemory& reclaim_memory,
                                                PlanStages* stages = nullptr, const std::vector<bool>* varies = nullptr);

// Returns the plan of a copy of `graph` whose inputs have these types, with outputs in these places (empty: host memory).
absl::StatusOr<std::shared_ptr<Plan>> BuildPlan(const Graph& graph, std::span<const InputType> inputs,
                                                std::span<const IoPlace> outputs,
                                                const std::shared_ptr<const PlanContext>& context, const StopControl* stop,
                                                const ReclaimMemory& reclaim_memory);

}  // namespace mge
