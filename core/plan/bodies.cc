// SPDX-License-Identifier: Apache-2.0
#include "core/plan/bodies.h"

#include <optional>

#include "core/plan/program.h"
#include "fmt/format.h"

namespace mge {
namespace {

// Returns the types of the body's inputs if they are the same in every run, else nullopt.
std::optional<std::vector<InputType>> KnownTypes(const Graph& body) {
  std::vector<InputType> types;
  for (ValueId v : body.inputs()) {
    const Value& value = body.value(v);
    if (value.kind != ValueKind::kTensor || !value.type.IsStatic()) return std::nullopt;
    types.push_back({value.kind, value.type.dtype, value.type.dims});
  }
  return types;
}

void Make(BodyPlans& out) {
  std::optional<std::vector<InputType>> types = KnownTypes(out.body->program->graph());
  if (!types) {
    out.reason = "planned during the run, since its shapes depend on data";
    return;
  }
  absl::StatusOr<std::shared_ptr<const Plan>> plan = out.body->program->PlanFor(*types);
  if (plan.ok()) {
    out.plans.push_back(*std::move(plan));
  } else {
    out.reason = fmt::format("it cannot run for these shapes: {}", ErrorTitle(plan.status()));
  }
}

void Visit(const Plan& plan, const std::string& path,
           const std::function<void(const Plan& plan, const std::string& path)>& visit) {
  visit(plan, path);
  for (const BodyPlans& body : PlansOfBodies(plan, /*make=*/false)) {
    const std::string below = path.empty() ? body.path : path + "/" + body.path;
    for (const auto& nested : body.plans) Visit(*nested, below, visit);
  }
}

}  // namespace

std::vector<BodyPlans> PlansOfBodies(const Plan& plan, bool make) {
  std::vector<BodyPlans> all;
  for (const PlanBody& body : plan.bodies) {
    BodyPlans& out = all.emplace_back();
    out.body = &body;
    out.path = body.unit < 0 ? body.name : UnitLabel(plan.units[static_cast<size_t>(body.unit)]) + "." + body.name;
    out.plans = body.program->plans();
    if (!out.plans.empty()) continue;
    if (make) {
      Make(out);
    } else {
      out.reason = "it has not run";
    }
  }
  return all;
}

void ForEachPlan(const Plan& plan, const std::function<void(const Plan& plan, const std::string& path)>& visit) {
  Visit(plan, "", visit);
}

}  // namespace mge
