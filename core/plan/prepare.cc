// SPDX-License-Identifier: Apache-2.0
#include <utility>

#include "core/plan/kernel.h"
#include "core/plan/stages.h"

namespace mge {

absl::Status PrepareKernels(Planning& p) {
  for (Draft& d : p.drafts) {
    MGE_RETURN_IF_ERROR(p.CheckStop());
    if (d.unit.kind != Unit::Kind::kKernel && d.unit.kind != Unit::Kind::kReorder) continue;
    std::unique_ptr<ReorderProblem> reorder;
    mge_problem problem;
    if (d.group) {
      problem = ProblemOf(*d.group, p.context->threads);
    } else {
      reorder = std::make_unique<ReorderProblem>(p.value(p.items[d.inputs[0]].value).type, d.from, d.to, p.context->threads);
      problem = *reorder->problem();
    }
    absl::StatusOr<KernelHandle> kernel = PrepareKernel(*d.device, problem, d.candidate, d.prepared);
    if (!kernel.ok()) return AddWhere(kernel.status(), p.Place(d));
    p.plan->kernels.push_back(*std::move(kernel));
    if (d.prepared.has_state) {
      d.state_index = static_cast<uint32_t>(p.plan->states.size());
      p.plan->states.push_back(d.prepared.kernel);
      p.plan->state_apis.push_back(&d.device->kernel_api());
    }
  }
  return absl::OkStatus();
}

}  // namespace mge
