// SPDX-License-Identifier: Apache-2.0
#include <utility>

#include "core/base/errors.h"
#include "core/plan/kernel.h"
#include "core/plan/stages.h"
#include "fmt/format.h"

namespace mge {
namespace {

// The problem of a kernel's or reorder's draft, and what it points to.
struct DraftProblem {
  DraftProblem(const Planning& p, const Draft& d) {
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

// Remembers a kernel that answered MGE_UNIMPLEMENTED; fails where that was known already, as planning anew would not help.
absl::Status Remember(Planning& p, const Draft& d, const mge_problem& problem, const absl::Status& why) {
  const std::string text = PartsOf(why).what;
  if (p.context->unable->Add(*d.device, problem, d.candidate.id, fmt::format("it cannot be prepared: {}", text))) {
    return absl::OkStatus();
  }
  return AddWhere(why, p.Place(d));
}

}  // namespace

absl::StatusOr<bool> PrepareKernels(Planning& p) {
  bool all = true;
  for (Draft& d : p.drafts) {
    MGE_RETURN_IF_ERROR(p.CheckStop());
    if (d.unit.kind != Unit::Kind::kKernel && d.unit.kind != Unit::Kind::kReorder) continue;
    const DraftProblem of(p, d);
    absl::StatusOr<KernelHandle> kernel = PrepareKernel(*d.device, of.problem, d.candidate, d.prepared);
    if (!kernel.ok() && kernel.status().code() == absl::StatusCode::kUnimplemented) {
      MGE_RETURN_IF_ERROR(Remember(p, d, of.problem, kernel.status()));
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
