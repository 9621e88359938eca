// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "core/base/duration_text.h"
#include "core/plan/stages.h"
#include "core/plan/transfers.h"
#include "fmt/format.h"

namespace mge {
namespace {

// Records the reason for the chosen candidate, and the reasons against the others.
void Explain(const Group& group, const GroupChoice& choice, PlannedUnit& planned) {
  planned.unit.placement = group.placement;
  if (group.kind == Unit::Kind::kKernel) {
    planned.candidate = group.candidates.offered[choice.candidate];
    planned.in_place = planned.candidate.in_place;
    planned.unit.reason = choice.reason;
    for (size_t c = 0; c < group.candidates.offered.size(); ++c) {
      const OwnedCandidate& other = group.candidates.offered[c];
      if (static_cast<int>(c) == choice.candidate) continue;
      std::string reason = other.cost_us < 0 ? "no estimate" : fmt::format("estimated {}", DurationText(other.cost_us));
      if (other.measured_us >= 0) reason += fmt::format(", measured {}", DurationText(other.measured_us));
      if (!other.fault.empty()) reason += ", " + other.fault;
      planned.unit.alternatives.push_back({other.id, std::move(reason), other.cost_us, other.measured_us});
    }
    for (const Refusal& r : group.candidates.refused) planned.unit.alternatives.push_back({.id = r.id, .reason = r.reason});
  } else {
    for (const Refusal& r : group.refused) planned.unit.alternatives.push_back({.id = r.id, .reason = r.reason});
    planned.unit.reason = group.kind == Unit::Kind::kAlias  ? "the same bytes under another shape"
                          : group.kind == Unit::Kind::kHost ? "the core computes it on host values"
                          : group.refused.empty()           ? "no backend offers a kernel"
                                                            : "the backends refuse all kernels that they have for it";
  }
}

// Returns the device in whose memory the alias's input is. The alias shares its bytes.
Device& DeviceOfAlias(const PlanBuilder& p, const Group& group) {
  if (p.IsConstant(group.inputs[0])) return HostStepDevice(*p.context);
  Device* made_by = p.items[p.versions.at(group.inputs[0]).front()].device;
  return made_by ? *made_by : HostStepDevice(*p.context);
}

absl::Status ScheduleGroup(PlanBuilder& p, const Group& group, const GroupChoice& choice) {
  PlannedUnit planned;
  planned.unit.kind = group.kind;
  planned.unit.fusion = group.claim;
  planned.device = group.kind == Unit::Kind::kAlias ? &DeviceOfAlias(p, group) : group.device;
  planned.group = &group;
  planned.choice = &choice;
  int32_t space = p.SpaceOf(*planned.device);
  for (size_t k = 0; k < group.inputs.size(); ++k) {
    MGE_ASSIGN_OR_RETURN(int32_t item, TransferTo(p, group.inputs[k], choice.inputs[k], *planned.device));
    planned.inputs.push_back(item);
  }
  if (group.kind == Unit::Kind::kKernel && HasQueues(*planned.device)) {
    planned.queue = QueueOf(p, *planned.device, MGE_QUEUE_COMPUTE);
  }
  int32_t unit = static_cast<int32_t>(p.planned_units.size());
  for (int32_t item : planned.inputs) {
    if (item >= 0) p.items[item].uses.push_back(unit);
  }
  for (size_t k = 0; k < group.outputs.size(); ++k) {
    planned.outputs.push_back(NewItem(p, group.outputs[k], choice.outputs[k], space, planned.device, unit));
  }
  Explain(group, choice, planned);
  p.planned_units.push_back(std::move(planned));
  return absl::OkStatus();
}

// Adds the reorders and copies for the outputs and for the inputs of the continuation. Both are plain and in host memory.
absl::Status ScheduleEnds(PlanBuilder& p) {
  auto read = [&](ValueId v) -> absl::Status {
    if (v == kNone || p.IsConstant(v) || p.IsDeferred(v)) return absl::OkStatus();
    MGE_ASSIGN_OR_RETURN(int32_t item, TransferTo(p, v, PlainLayout(), HostStepDevice(*p.context)));
    p.items[item].uses.push_back(kEnd);
    return absl::OkStatus();
  };
  for (ValueId v : p.graph.outputs()) MGE_RETURN_IF_ERROR(read(v));
  for (NodeId id : p.cover.deferred) {
    for (ValueId v : p.graph.node(id).inputs) MGE_RETURN_IF_ERROR(read(v));
    for (ValueId v : p.graph.node(id).captures) MGE_RETURN_IF_ERROR(read(v));
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status ScheduleUnits(PlanBuilder& p) {
  for (ValueId v : p.graph.inputs()) {
    if (!p.IsConstant(v)) NewItem(p, v, PlainLayout(), kHostSpace, nullptr, -1);
  }
  for (size_t g = 0; g < p.cover.groups.size(); ++g) {
    MGE_RETURN_IF_ERROR(ScheduleGroup(p, p.cover.groups[g], p.choices[g]));
  }
  MGE_RETURN_IF_ERROR(ScheduleEnds(p));
  for (Item& item : p.items) {
    for (int32_t u : item.uses) item.last_use = std::max(item.last_use, u);
  }
  return absl::OkStatus();
}

}  // namespace mge
