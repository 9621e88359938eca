// SPDX-License-Identifier: Apache-2.0
// The plans of a plan's bodies (control flow and continuation), for reports that cover the whole model.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "core/plan/plan.h"

namespace mge {

// The plans of one body.
struct BodyPlans {
  const PlanBody* body = nullptr;                  // element of Plan::bodies
  std::string path;                                // path within the plan: "loop1.body"
  std::vector<std::shared_ptr<const Plan>> plans;  // plans in the cache, the most recently used one first
  std::string reason;                              // the reason why there is no plan; empty if there is one
};

// Returns the plans of each body. If `make` is true, creates a plan for a body that has none and whose types are known
// before a run. A body without a plan has a reason.
std::vector<BodyPlans> PlansOfBodies(const Plan& plan, bool make);

// Calls visit(plan, path) for the plan itself (path "") and for all existing plans of bodies within it.
void ForEachPlan(const Plan& plan, const std::function<void(const Plan& plan, const std::string& path)>& visit);

}  // namespace mge
