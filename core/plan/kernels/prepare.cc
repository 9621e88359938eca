// SPDX-License-Identifier: Apache-2.0
#include <utility>

#include "core/kernel/kernel.h"
#include "core/plan/stages.h"
#include "fmt/format.h"

namespace mge {
namespace {

// The problem of a unit that runs a kernel or a reorder. Owns the structs of a reorder; those of a group belong to the
// group.
struct PlannedProblem {
  PlannedProblem(const PlanBuilder& p, const PlannedUnit& d) {
    if (d.group) {
      problem = ProblemOf(*d.group, p.context->threads);
    } else {
      reorder = std::make_unique<ReorderProblem>(p.value(p.items[d.inputs[0]].value).type, d.from, d.to, p.context->threads);
      problem = *reorder->problem();
    }
  }
  std::unique_ptr<ReorderProblem> reorder;
  mge_problem problem;
};

}  // namespace

absl::StatusOr<bool> PrepareKernels(PlanBuilder& p) {
  UnableKernels& unable = *p.context->unable;
  bool all = true;
  for (PlannedUnit& d : p.planned_units) {
    MGE_RETURN_IF_ERROR(p.CheckStop());
    if (d.unit.kind != Unit::Kind::kKernel && d.unit.kind != Unit::Kind::kReorder) continue;
    const PlannedProblem of(p, d);
    // Since this kernel was chosen, an equal step of this plan, or a plan of another thread, may have failed to prepare it.
    if (unable.Knows(*d.device, of.problem, d.candidate.id)) {
      all = false;
      continue;
    }
    absl::StatusOr<KernelHandle> kernel = PrepareKernel(*d.device, of.problem, d.candidate, d.prepared);
    if (!kernel.ok() && kernel.status().code() == absl::StatusCode::kUnimplemented) {
      unable.Add(*d.device, of.problem, d.candidate.id,
                 fmt::format("it cannot be prepared: {}", PartsOf(kernel.status()).what));
      all = false;
      continue;
    }
    if (!kernel.ok()) return AddWhere(kernel.status(), p.Place(d));
    p.plan->kernels.push_back(*std::move(kernel));
    if (d.prepared.has_state) {
      d.state_index = static_cast<uint32_t>(p.plan->states.size());
      p.plan->states.push_back(d.prepared.kernel);
      p.plan->state_apis.push_back(&d.device->kernel_api());
    }
  }
  return all;
}

}  // namespace mge
