// SPDX-License-Identifier: Apache-2.0
// The plans of a plan's bodies, for reports: steps, memory and reference steps of bodies belong to the model.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "core/plan/plan.h"

namespace mge {

struct BodyPlans {
  const PlanBody* body = nullptr;                  // of Plan::bodies
  std::string path;                                // "loop1.body", within the plan
  std::vector<std::shared_ptr<const Plan>> plans;  // made so far, the one used last first
  std::string reason;                              // why there is no plan
};

// Returns the plans of each body. With `make`, plans a body that has none if its types follow from the plan's. A body whose
// types are known only in a run, or that cannot be planned, has a reason instead.
std::vector<BodyPlans> PlansOfBodies(const Plan& plan, bool make);

// Calls visit(plan, path) for the plan itself (path "") and for all plans made so far of bodies within it.
void ForEachPlan(const Plan& plan, const std::function<void(const Plan& plan, const std::string& path)>& visit);

}  // namespace mge
