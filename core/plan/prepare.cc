// SPDX-License-Identifier: Apache-2.0
#include "core/base/errors.h"
#include "core/plugin/host_services.h"
#include "core/plan/stages.h"
#include "fmt/format.h"

namespace mge {

absl::Status PrepareKernels(Planning& p) {
  for (Draft& d : p.drafts) {
    MGE_RETURN_IF_ERROR(p.CheckStop());
    if (d.unit.kind != Unit::Kind::kKernel && d.unit.kind != Unit::Kind::kReorder) continue;
    const mge_kernel_api& api = d.device->kernel_api();
    OwnedCandidate::Abi abi = d.candidate.ToAbi();
    std::unique_ptr<ReorderProblem> reorder;
    mge_problem problem;
    if (d.group) {
      problem = ProblemOf(*d.group, p.context->threads);
    } else {
      reorder = std::make_unique<ReorderProblem>(p.value(p.items[d.inputs[0]].value).type, d.from, d.to, p.context->threads);
      problem = *reorder->problem();
    }
    d.prepared = {};
    d.prepared.struct_size = sizeof(mge_prepared);
    mge_error error;
    mge_code code = api.prepare(d.device->handle(), &problem, &abi.candidate, &d.prepared, &error);
    if (code != MGE_OK) {
      return AddWhere(StatusOfBackend(code, error, fmt::format("device {}: preparing {}", d.device->name(), d.candidate.id)),
                      p.Place(d));
    }
    p.plan->kernels.push_back(KernelHandle(d.prepared.kernel, KernelDeleter{&api}));
    if (d.prepared.workspace_bytes > d.candidate.workspace) {
      return Fail(errors::kKernelFailed,
                  fmt::format("kernel {} asks for more workspace than it promised", d.candidate.id),
                  {.what = fmt::format("{} bytes, promised {}", d.prepared.workspace_bytes, d.candidate.workspace),
                   .where = p.Place(d)});
    }
    if (d.prepared.has_state) {
      d.state_index = static_cast<uint32_t>(p.plan->states.size());
      p.plan->states.push_back(d.prepared.kernel);
      p.plan->state_apis.push_back(&api);
    }
  }
  return absl::OkStatus();
}

}  // namespace mge
