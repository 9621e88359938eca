// SPDX-License-Identifier: Apache-2.0
#include "core/plan/planner.h"

#include <algorithm>
#include <limits>
#include <optional>
#include <utility>

#include "core/base/errors.h"
#include "core/ops/reports/live_results.h"
#include "core/plan/accesses.h"
#include "core/plan/assemble.h"
#include "core/plan/bind.h"
#include "core/plan/cover.h"
#include "core/plan/fallback_log.h"
#include "core/plan/memory/memory_errors.h"
#include "core/plan/memory/memory_limit.h"
#include "core/plan/memory/state_memory.h"
#include "core/plan/nested.h"
#include "core/plan/passes/specialise.h"
#include "core/plan/recompute.h"
#include "core/plan/segments.h"
#include "core/plan/value_records.h"
#include "fmt/format.h"

namespace mge {
namespace {

// The results of the stages from the cover to the prepared kernels.
struct PreparedSchedule {
  ChosenKernels chosen;
  Schedule schedule;  // points into `chosen`
  PreparedKernels kernels;
};

// Runs the stages from the cover to the prepared kernels. Starts again while some kernels prove to be unable.
absl::StatusOr<PreparedSchedule> CoverAndSchedule(const Graph& graph, const IoPlaces& places, const PlanContext& context,
                                                  const StopControl* stop, const std::vector<bool>* varies) {
  for (;;) {
    const size_t known = context.caches->unable.count();
    MGE_RETURN_IF_ERROR(CheckStop(stop));
    MGE_ASSIGN_OR_RETURN(Cover cover, CoverGraph(graph, places, context, stop, varies));
    MGE_RETURN_IF_ERROR(CheckStop(stop));
    MGE_ASSIGN_OR_RETURN(ChosenKernels chosen, ChooseKernels(graph, std::move(cover), context, stop));
    if (context.caches->unable.count() != known) continue;  // a layout without a reorder
    MGE_ASSIGN_OR_RETURN(Schedule schedule, ScheduleUnits(graph, chosen, context, places, stop));
    MGE_ASSIGN_OR_RETURN(std::optional<PreparedKernels> kernels, PrepareKernels(graph, schedule, context, stop));
    if (kernels) return PreparedSchedule{std::move(chosen), std::move(schedule), *std::move(kernels)};
    if (context.caches->unable.count() == known) {
      return Fail(errors::kInternal, "a kernel that cannot be prepared was chosen again");
    }
  }
}

}  // namespace

absl::StatusOr<std::shared_ptr<Plan>> PlanGraph(const Graph& graph, std::vector<std::string> pass_log, int64_t denied_bytes,
                                                const IoPlaces& places, const std::shared_ptr<const PlanContext>& context,
                                                const StopControl* stop, const ReclaimMemory& reclaim_memory,
                                                PlanStages* stages, const std::vector<bool>* varies) {
  MGE_ASSIGN_OR_RETURN(PreparedSchedule prepared, CoverAndSchedule(graph, places, *context, stop, varies));
  auto& [chosen, schedule, kernels] = prepared;
  MGE_ASSIGN_OR_RETURN(MemoryPlan memory, AssignBuffers(graph, chosen.cover, schedule, kernels, *context, stop));
  MGE_ASSIGN_OR_RETURN(std::vector<MemoryNeed> needs, CheckMemoryLimits(graph, chosen.cover, schedule, kernels, memory,
                                                                        *context, denied_bytes, reclaim_memory));
  const WhenOver when_over = [&](absl::Status over, const Budget& budget) {
    if (ErrorId(over) == errors::kOverBudget.id && reclaim_memory()) return absl::OkStatus();
    return NameConstants(std::move(over), needs, budget);
  };
  MGE_ASSIGN_OR_RETURN(PlanConstants constants, PlaceConstants(graph, schedule, kernels, memory, *context, stop, when_over));
  MGE_ASSIGN_OR_RETURN(BoundSteps bound, BindSteps(graph, schedule, kernels, memory, constants, context, stop));
  Segments segments = FormSegments(schedule, memory, bound, *context);
  if (context->settings->Get<kDebugCheckMemory>()) FindLives(schedule, segments.steps, memory);
  std::vector<StepAccess> accesses;
  if (StepsPerOperation(*context) != kAllSteps) accesses = FindAccesses(schedule, memory, segments.steps);
  MGE_ASSIGN_OR_RETURN(std::unique_ptr<Continuation> continuation,
                       MakeContinuation(graph, chosen.cover, schedule, memory, context, stop));
  MGE_ASSIGN_OR_RETURN(std::vector<StateBase> states, BindStates(graph, memory, *context, stop));
  ValueRecords records;
  if (RecordsValues(*context->settings)) records = RecordValues(graph, schedule, memory);
  if (FallbackLog* fallbacks = context->services->fallbacks.get()) fallbacks->Log(bound.units, *context);
  if (stages) {
    *stages = {.chosen = {}, .schedule = std::move(schedule), .kernels = kernels, .memory = memory, .constants = {}};
    stages->constants.plain = constants.plain;
    stages->constants.packed = constants.packed;
  }
  std::shared_ptr<Plan> plan = AssemblePlan(*context, {.graph = graph,
                                                       .pass_log = std::move(pass_log),
                                                       .dropped_claims = std::move(chosen.cover.dropped_claims),
                                                       .kernels = std::move(kernels),
                                                       .memory = std::move(memory),
                                                       .needs = std::move(needs),
                                                       .constants = std::move(constants),
                                                       .states = std::move(states),
                                                       .bound = std::move(bound),
                                                       .segments = std::move(segments),
                                                       .accesses = std::move(accesses),
                                                       .continuation = std::move(continuation),
                                                       .records = std::move(records)});
  if (stages) stages->chosen = std::move(chosen);
  return plan;
}

namespace {

absl::Status BudgetTooSmall(std::string what) {
  return Fail(errors::kOverBudget, "the results of a training step do not fit into train.memory_budget_bytes",
              {.what = std::move(what), .fix = "use a smaller batch, or a larger budget"});
}

// Makes plans of a training step until the arenas of one fit into train.memory_budget_bytes. The first one computes nothing again.
// The search counts results, and a plan needs other memory: fused nodes need less, workspaces and gaps between buffers more. So
// each plan corrects the target of the next one.
absl::StatusOr<std::shared_ptr<Plan>> PlanWithin(int64_t budget, const SpecialisedGraph& special, const IoPlaces& places,
                                                 const std::shared_ptr<const PlanContext>& context, const StopControl* stop,
                                                 const ReclaimMemory& reclaim_memory) {
  constexpr int kPlans = 6;
  constexpr double kCaution = 0.98;
  double target = 0;
  int64_t least = std::numeric_limits<int64_t>::max();
  for (int i = 0; i < kPlans; ++i) {
    SpecialisedGraph next = special;
    if (i > 0) {
      MGE_ASSIGN_OR_RETURN(const Recomputed again, RecomputeWithin(next.graph, static_cast<int64_t>(target)));
      if (!again.fits) {
        return BudgetTooSmall(
            fmt::format("they need {} bytes with everything computed again that helps, {} without; the budget "
                        "is {}",
                        again.after, again.before, budget));
      }
      MGE_RETURN_IF_ERROR(next.graph.Compact());
      next.pass_log.push_back(
          fmt::format("recompute: {} nodes, {:.1f} % more work: at most {} bytes of results instead of {}", again.nodes,
                      100 * again.work, again.after, again.before));
    }
    absl::StatusOr<std::shared_ptr<Plan>> plan =
        PlanGraph(next.graph, std::move(next.pass_log), next.denied_bytes, places, context, stop, reclaim_memory);
    if (!plan.ok()) {
      // One that computes more again may fit where this one does not.
      if (i > 0 || ErrorId(plan.status()) != errors::kOverBudget.id) return plan.status();
      target = static_cast<double>(budget);
      continue;
    }
    const int64_t needed = (*plan)->report.arena_bytes;
    if (needed <= budget) return plan;
    least = std::min(least, needed);
    if (i == 0) {
      MGE_ASSIGN_OR_RETURN(const LiveResults live, FindLiveResults(special.graph));
      target = static_cast<double>(live.peak);
    }
    target *= static_cast<double>(budget) / static_cast<double>(needed) * (i == 0 ? 1 : kCaution);
  }
  return BudgetTooSmall(fmt::format("the smallest plan needs {} bytes; the budget is {}", least, budget));
}

}  // namespace

absl::StatusOr<std::shared_ptr<Plan>> BuildPlan(const Graph& given, std::span<const InputType> inputs,
                                                std::span<const IoPlace> outputs,
                                                const std::shared_ptr<const PlanContext>& context, const StopControl* stop,
                                                const ReclaimMemory& reclaim_memory) {
  MGE_ASSIGN_OR_RETURN(SpecialisedGraph special, Specialise(given, inputs, *context, stop));
  IoPlaces places = {{}, {outputs.begin(), outputs.end()}};
  for (const InputType& input : inputs) places.inputs.push_back(input.place);
  if (context->training && context->settings->IsSet<kTrainMemoryBudget>()) {
    return PlanWithin(context->settings->Get<kTrainMemoryBudget>().count, special, places, context, stop, reclaim_memory);
  }
  return PlanGraph(special.graph, std::move(special.pass_log), special.denied_bytes, places, context, stop, reclaim_memory);
}

}  // namespace mge
