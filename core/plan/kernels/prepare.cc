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

// The problem of a unit that runs a kernel or a reorder, and its kernel. Owns the structs of a reorder; those of a group
// belong to the group.
struct Preparation {
  Preparation(size_t number, const Graph& graph, const Schedule& schedule, uint32_t threads) : unit(number) {
    const PlannedUnit& of = schedule.units[unit];
    if (of.group) {
      problem = ProblemOf(*of.group, threads);
    } else {
      const TensorType& type = graph.value(schedule.items[of.inputs[0]].value).type;
      reorder = std::make_unique<ReorderProblem>(type, of.from, of.to, threads);
      problem = *reorder->problem();
    }
  }
  size_t unit;
  std::unique_ptr<ReorderProblem> reorder;
  mge_problem problem;
  KernelHandle kernel = nullptr;  // nullptr: it cannot be prepared
  bool rebound = false;           // `kernel` was derived from one for other shapes
};

// Returns true if the kernel needs the packed form of a state on a device whose backend packs only in host memory.
bool PacksStateOnQueue(const Graph& graph, const PlannedUnit& unit, const mge_prepared& prepared) {
  if (!unit.group || !HasQueues(*unit.device) || unit.device->kernel_api().prepack_on) return false;
  for (size_t k = 0; k < unit.group->abi->inputs().size(); ++k) {
    if (PacksState(graph, *unit.group, prepared, k)) return true;
  }
  return false;
}

}  // namespace

absl::StatusOr<KernelHandle> MakeKernel(const PlanContext& context, const PlannedUnit& unit, const mge_problem& problem,
                                        mge_prepared& prepared, bool& rebound) {
  Device& device = *unit.device;
  if (!device.kernel_api().rebind) return PrepareKernel(device, problem, unit.candidate, prepared);
  const std::string family = FamilyOf(device, problem, unit.candidate.id);
  if (KernelHandle known = context.caches->families.Find(family)) {
    MGE_ASSIGN_OR_RETURN(KernelHandle kernel, RebindKernel(device, known.get(), problem, unit.candidate, prepared));
    rebound = kernel != nullptr;
    if (kernel) return kernel;
  }
  MGE_ASSIGN_OR_RETURN(KernelHandle kernel, PrepareKernel(device, problem, unit.candidate, prepared));
  context.caches->families.Add(family, kernel);
  return kernel;
}

absl::StatusOr<std::optional<PreparedKernels>> PrepareKernels(const Graph& graph, const Schedule& schedule,
                                                              const PlanContext& context, const StopControl* stop) {
  UnableKernels& unable = context.caches->unable;
  PreparedKernels out;
  out.units.resize(schedule.units.size());
  std::vector<std::unique_ptr<Preparation>> work;
  for (size_t u = 0; u < schedule.units.size(); ++u) {
    if (schedule.units[u].HasKernel()) work.push_back(std::make_unique<Preparation>(u, graph, schedule, context.threads));
  }
  ProgressOfStage progress(context.progress.get(), "kernels", work.size());
  MGE_RETURN_IF_ERROR(ForEachOnPool(context, work.size(), [&](uint64_t i) -> absl::Status {
    MGE_RETURN_IF_ERROR(CheckStop(stop));
    progress.Advance();
    Preparation& w = *work[i];
    const PlannedUnit& unit = schedule.units[w.unit];
    // Since this kernel was chosen, a plan of another thread may have failed to prepare it.
    if (unable.Knows(*unit.device, w.problem, unit.candidate.id)) return absl::OkStatus();
    mge_prepared& prepared = out.units[w.unit].prepared;
    absl::StatusOr<KernelHandle> kernel = MakeKernel(context, unit, w.problem, prepared, w.rebound);
    if (!kernel.ok() && kernel.status().code() == absl::StatusCode::kUnimplemented) {
      unable.Add(*unit.device, w.problem, unit.candidate.id,
                 fmt::format("it cannot be prepared: {}", PartsOf(kernel.status()).what));
      return absl::OkStatus();
    }
    if (!kernel.ok()) return AddWhere(kernel.status(), PlaceOf(graph, schedule, unit));
    if (PacksStateOnQueue(graph, unit, prepared)) {
      unable.Add(*unit.device, w.problem, unit.candidate.id,
                 "it packs a state, and its backend cannot pack on a queue (prepack_on)");
      return absl::OkStatus();
    }
    w.kernel = *std::move(kernel);
    return absl::OkStatus();
  }));
  bool all = true;
  for (std::unique_ptr<Preparation>& w : work) {
    if (!w->kernel) {
      all = false;
      continue;
    }
    PreparedKernel& made = out.units[w->unit];
    out.handles.push_back(std::move(w->kernel));
    out.rebound += w->rebound;
    if (made.prepared.has_state) {
      made.state_index = static_cast<uint32_t>(out.states.size());
      out.states.push_back(made.prepared.kernel);
      out.state_apis.push_back(&schedule.units[w->unit].device->kernel_api());
    }
  }
  if (!all) return std::nullopt;
  return out;
}

}  // namespace mge
