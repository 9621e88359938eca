// SPDX-License-Identifier: Apache-2.0
// Times the candidates of a problem on their device, for the strategy PROFILE.
#pragma once

#include <vector>

#include "core/plan/candidate.h"
#include "core/plan/program.h"

namespace mge {

// Microseconds per run for each candidate: the least of some warm runs on seeded non-zero data; negative for one that
// could not be run within the device's budget.
absl::StatusOr<std::vector<double>> MeasureCandidates(Device& device, const mge_problem& problem,
                                                      const std::vector<OwnedCandidate>& candidates,
                                                      const PlanContext& context);

}  // namespace mge
