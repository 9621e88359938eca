// SPDX-License-Identifier: Apache-2.0
#include "core/plan/kernels/prepare.h"

#include <memory>
#include <utility>

#include "core/kernel/abi_graph.h"
#include "core/plan/kernels/kernel_families.h"
#include "core/plan/kernels/problem_key.h"
#include "core/plan/memory/buffers.h"
#include "fmt/format.h"

namespace mge {
namespace {

// The problem of a unit that runs a kernel or a reorder. Owns the structs of a reorder; those of a group belong to the
// group.
struct PlannedProblem {
  PlannedProblem(const Graph& graph, const Schedule& schedule, const PlannedUnit& unit, uint32_t threads) {
    if (unit.group) {
      problem = ProblemOf(*unit.group, threads);
    } else {
      const TensorType& type = graph.value(schedule.items[unit.inputs[0]].value).type;
      reorder = std::make_unique<ReorderProblem>(type, unit.from, unit.to, threads);
      problem = *reorder->problem();
    }
  }
  std::unique_ptr<ReorderProblem> reorder;
  mge_problem problem;
};

// Creates the kernel of a unit, from one for other shapes if the session has one. `rebound` counts those.
absl::StatusOr<KernelHandle> Make(const PlanContext& context, const PlannedUnit& unit, const mge_problem& problem,
                                  mge_prepared& prepared, int& rebound) {
  Device& device = *unit.device;
  if (!context.families || !device.kernel_api().rebind) return PrepareKernel(device, problem, unit.candidate, prepared);
  const std::string family = FamilyOf(device, problem, unit.candidate.id);
  if (KernelHandle known = context.families->Find(family)) {
    MGE_ASSIGN_OR_RETURN(KernelHandle kernel, RebindKernel(device, known.get(), problem, unit.candidate, prepared));
    rebound += kernel != nullptr;
    if (kernel) return kernel;
  }
  MGE_ASSIGN_OR_RETURN(KernelHandle kernel, PrepareKernel(device, problem, unit.candidate, prepared));
  context.families->Add(family, kernel);
  return kernel;
}

// Returns true if the kernel needs the packed form of a state on a device whose backend packs only in host memory.
bool PacksStateOnQueue(const Graph& graph, const PlannedUnit& unit, const mge_prepared& prepared) {
  if (!unit.group || !HasQueues(*unit.device) || unit.device->kernel_api().prepack_on) return false;
  for (size_t k = 0; k < unit.group->abi->inputs().size(); ++k) {
    if (PacksState(graph, *unit.group, prepared, k)) return true;
  }
  return false;
}

}  // namespace

absl::StatusOr<std::optional<PreparedKernels>> PrepareKernels(const Graph& graph, const Schedule& schedule,
                                                              const PlanContext& context, const StopControl* stop) {
  UnableKernels& unable = *context.unable;
  PreparedKernels out;
  out.units.resize(schedule.units.size());
  bool all = true;
  for (size_t u = 0; u < schedule.units.size(); ++u) {
    const PlannedUnit& unit = schedule.units[u];
    MGE_RETURN_IF_ERROR(CheckStop(stop));
    if (!unit.HasKernel()) continue;
    const PlannedProblem of(graph, schedule, unit, context.threads);
    // Since this kernel was chosen, an equal step of this plan, or a plan of another thread, may have failed to prepare it.
    if (unable.Knows(*unit.device, of.problem, unit.candidate.id)) {
      all = false;
      continue;
    }
    PreparedKernel& made = out.units[u];
    absl::StatusOr<KernelHandle> kernel = Make(context, unit, of.problem, made.prepared, out.rebound);
    if (!kernel.ok() && kernel.status().code() == absl::StatusCode::kUnimplemented) {
      unable.Add(*unit.device, of.problem, unit.candidate.id,
                 fmt::format("it cannot be prepared: {}", PartsOf(kernel.status()).what));
      all = false;
      continue;
    }
    if (!kernel.ok()) return AddWhere(kernel.status(), PlaceOf(graph, schedule, unit));
    if (PacksStateOnQueue(graph, unit, made.prepared)) {
      unable.Add(*unit.device, of.problem, unit.candidate.id,
                 "it packs a state, and its backend cannot pack on a queue (prepack_on)");
      all = false;
      continue;
    }
    out.handles.push_back(*std::move(kernel));
    if (made.prepared.has_state) {
      made.state_index = static_cast<uint32_t>(out.states.size());
      out.states.push_back(made.prepared.kernel);
      out.state_apis.push_back(&unit.device->kernel_api());
    }
  }
  if (!all) return std::nullopt;
  return out;
}

}  // namespace mge
