// SPDX-License-Identifier: Apache-2.0
#include "core/plan/kernels/prepare.h"

#include <memory>
#include <utility>

#include "core/kernel/abi_graph.h"
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
};

}  // namespace

absl::StatusOr<std::optional<PreparedKernels>> PrepareKernels(const Graph& graph, const Schedule& schedule,
                                                              const PlanContext& context, const StopControl* stop) {
  UnableKernels& unable = *context.unable;
  PreparedKernels out;
  out.units.resize(schedule.units.size());
  std::vector<std::unique_ptr<Preparation>> work;
  for (size_t u = 0; u < schedule.units.size(); ++u) {
    if (schedule.units[u].HasKernel()) work.push_back(std::make_unique<Preparation>(u, graph, schedule, context.threads));
  }
  MGE_RETURN_IF_ERROR(ForEachOnPool(context, work.size(), [&](uint64_t i) -> absl::Status {
    MGE_RETURN_IF_ERROR(CheckStop(stop));
    Preparation& w = *work[i];
    const PlannedUnit& unit = schedule.units[w.unit];
    // Since this kernel was chosen, a plan of another thread may have failed to prepare it.
    if (unable.Knows(*unit.device, w.problem, unit.candidate.id)) return absl::OkStatus();
    absl::StatusOr<KernelHandle> kernel = PrepareKernel(*unit.device, w.problem, unit.candidate, out.units[w.unit].prepared);
    if (!kernel.ok() && kernel.status().code() == absl::StatusCode::kUnimplemented) {
      unable.Add(*unit.device, w.problem, unit.candidate.id,
                 fmt::format("it cannot be prepared: {}", PartsOf(kernel.status()).what));
      return absl::OkStatus();
    }
    if (!kernel.ok()) return AddWhere(kernel.status(), PlaceOf(graph, schedule, unit));
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
