// SPDX-License-Identifier: Apache-2.0
#include "core/plan/measure.h"
#include "core/plan/stages.h"

namespace mge {
namespace {

constexpr double kUnknownUs = 1000;  // cost of a candidate without an estimate
constexpr double kNeverUs = 1e9;     // cost of a candidate that could not be run

}  // namespace

absl::Status ChooseKernels(Planning& p) {
  std::vector<std::vector<int>> order(p.cover.groups.size());
  std::vector<std::vector<double>> cost(p.cover.groups.size());
  for (size_t g = 0; g < p.cover.groups.size(); ++g) {
    Group& group = p.cover.groups[g];
    if (group.kind != Unit::Kind::kKernel) continue;
    mge_problem problem = ProblemOf(group, p.context->threads);
    const std::vector<OwnedCandidate>& offered = group.candidates.offered;
    for (const OwnedCandidate& c : offered) cost[g].push_back(c.cost_us < 0 ? kUnknownUs : c.cost_us);
    std::vector<double> measured;
    if (p.context->select_mode == MGE_SELECT_PROFILE && offered.size() > 1) {
      MGE_ASSIGN_OR_RETURN(measured, MeasureCandidates(*group.device, problem, offered, *p.context));
      for (size_t c = 0; c < measured.size(); ++c) {
        cost[g][c] = measured[c] >= 0 ? measured[c] : kNeverUs;
      }
    }
    MGE_ASSIGN_OR_RETURN(order[g], OrderCandidates(*group.device, problem, offered, p.context->select_mode,
                                                   measured.empty() ? nullptr : &measured));
  }
  p.choices = ChooseLayouts(p.graph, p.cover.groups, order, cost);
  return absl::OkStatus();
}

}  // namespace mge
