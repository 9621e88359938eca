// SPDX-License-Identifier: Apache-2.0
#include "core/plan/reorder.h"

#include "core/base/errors.h"
#include "fmt/format.h"

namespace mge {

absl::StatusOr<OwnedCandidate> ChooseReorder(Device& device, const TensorType& type, const mge_layout& from,
                                             const mge_layout& to, uint32_t threads, const mge_constraints& constraints,
                                             int32_t mode) {
  ReorderProblem problem(type, from, to, threads);
  MGE_ASSIGN_OR_RETURN(CandidateList list, EnumerateCandidates(device, *problem.problem(), constraints));
  if (list.offered.empty()) {
    std::string what = fmt::format("{} to {} of {}", LayoutText(from), LayoutText(to), type.ToString());
    for (const Refusal& r : list.refused) what += fmt::format("; {}: {}", r.id, r.reason);
    return Fail(errors::kKernelFailed, fmt::format("device {} offers a layout but no reorder for it", device.name()),
                {.what = std::move(what)});
  }
  // A reorder is never worth a measurement.
  if (mode == MGE_SELECT_PROFILE) mode = MGE_SELECT_HEURISTIC;
  MGE_ASSIGN_OR_RETURN(std::vector<int> order, OrderCandidates(device, *problem.problem(), list.offered, mode));
  return std::move(list.offered[order[0]]);
}

}  // namespace mge
