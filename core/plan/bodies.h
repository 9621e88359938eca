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
  const PlanBody* body = nullptr;  // the plan's
  std::string path;                // "loop1.body", within the plan
  std::vector<std::shared_ptr<const Plan>> plans;  // made so far, the one used last first
  std::string reason;              // why there is none, if there is none
};

// With `make`, a body that has no plan gets one now where its types follow from the plan's. Bodies whose types only a run tells,
// and those that cannot be planned for these types, have a reason in place of it.
std::vector<BodyPlans> PlansOfBodies(const Plan& plan, bool make);

// Calls visit(plan, path) for the plan itself (path "") and for all plans made so far of bodies within it.
void ForEachPlan(const Plan& plan, const std::function<void(const Plan& plan, const std::string& path)>& visit);

}  // namespace mge
