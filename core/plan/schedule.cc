// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include "core/base/errors.h"
#include "core/plan/stages.h"
#include "fmt/format.h"

namespace mge {
namespace {

int32_t NewItem(Planning& p, ValueId v, const mge_layout& layout, int32_t unit) {
  p.items.push_back({.value = v, .layout = layout, .made_by = unit});
  int32_t id = static_cast<int32_t>(p.items.size()) - 1;
  p.versions[v].push_back(id);
  return id;
}

// The item that holds v in that layout; adds a reorder if there is none yet. -1 for a constant.
absl::StatusOr<int32_t> Need(Planning& p, ValueId v, const mge_layout& layout, Device& device) {
  if (p.IsConstant(v)) return -1;
  for (int32_t id : p.versions[v]) {
    if (SameLayout(p.items[id].layout, layout)) return id;
  }
  MGE_CHECK(!p.versions[v].empty());
  int32_t source = p.versions[v].front();
  Draft draft;
  draft.unit.kind = Unit::Kind::kReorder;
  draft.device = &device;
  draft.from = p.items[source].layout;
  draft.to = layout;
  ReorderProblem problem(p.value(v).type, draft.from, draft.to, p.context->threads);
  mge_constraints constraints = {sizeof(mge_constraints), 0, p.context->require, 0, UINT64_MAX};
  MGE_ASSIGN_OR_RETURN(CandidateList list, EnumerateCandidates(device, *problem.problem(), constraints));
  if (list.offered.empty()) {
    return Fail(errors::kKernelFailed,
                fmt::format("device {} offers a layout but no reorder for it", device.name()),
                {.what = fmt::format("{} to {} of {}", LayoutText(draft.from), LayoutText(draft.to),
                                     p.value(v).type.ToString())});
  }
  MGE_ASSIGN_OR_RETURN(std::vector<int> order, OrderCandidates(device, *problem.problem(), list.offered,
                                                               MGE_SELECT_HEURISTIC, nullptr));
  draft.candidate = list.offered[order[0]];
  draft.unit.reason = fmt::format("'{}' is {} and wanted {}", p.value(v).name, LayoutText(draft.from),
                                  LayoutText(draft.to));
  int32_t unit = static_cast<int32_t>(p.drafts.size());
  draft.inputs = {source};
  p.items[source].uses.push_back(unit);
  draft.outputs = {NewItem(p, v, layout, unit)};
  int32_t made = draft.outputs[0];
  p.drafts.push_back(std::move(draft));
  return made;
}

// Why this candidate, and why not the others.
void Explain(const Group& group, const GroupChoice& choice, Draft& draft) {
  if (group.kind == Unit::Kind::kKernel) {
    draft.candidate = group.candidates.offered[choice.candidate];
    draft.in_place = draft.candidate.in_place;
    draft.unit.reason = choice.reason;
    for (size_t c = 0; c < group.candidates.offered.size(); ++c) {
      const OwnedCandidate& other = group.candidates.offered[c];
      if (static_cast<int>(c) != choice.candidate) {
        draft.unit.alternatives.push_back({other.id, fmt::format("estimated {:.2f} us", other.cost_us)});
      }
    }
    for (const Refusal& r : group.candidates.refused) draft.unit.alternatives.push_back({r.id, r.reason});
  } else {
    for (const Refusal& r : group.refused) draft.unit.alternatives.push_back({r.id, r.reason});
    draft.unit.reason = group.kind == Unit::Kind::kAlias ? "the same bytes under another shape"
                        : group.kind == Unit::Kind::kReference ? "no backend offers a kernel"
                                                               : "the core computes it on host values";
  }
}

absl::Status ScheduleGroup(Planning& p, const Group& group, const GroupChoice& choice) {
  Draft draft;
  draft.unit.kind = group.kind;
  draft.unit.fusion = group.claim;
  draft.device = group.device;
  draft.group = &group;
  draft.choice = &choice;
  for (size_t k = 0; k < group.inputs.size(); ++k) {
    MGE_ASSIGN_OR_RETURN(int32_t item, Need(p, group.inputs[k], choice.inputs[k], *group.device));
    draft.inputs.push_back(item);
  }
  int32_t unit = static_cast<int32_t>(p.drafts.size());
  for (int32_t item : draft.inputs) {
    if (item >= 0) p.items[item].uses.push_back(unit);
  }
  for (size_t k = 0; k < group.outputs.size(); ++k) {
    draft.outputs.push_back(NewItem(p, group.outputs[k], choice.outputs[k], unit));
  }
  Explain(group, choice, draft);
  p.drafts.push_back(std::move(draft));
  return absl::OkStatus();
}

// Outputs are plain, each in memory of its own; so is what the continuation reads.
absl::Status ScheduleEnds(Planning& p) {
  for (ValueId v : p.graph.outputs()) {
    if (p.IsConstant(v) || p.IsDeferred(v)) continue;
    MGE_ASSIGN_OR_RETURN(int32_t item, Need(p, v, PlainLayout(), *p.plan->device));
    p.items[item].uses.push_back(kEnd);
  }
  for (NodeId id : p.cover.deferred) {
    auto read = [&](ValueId v) -> absl::Status {
      if (v == kNone || p.IsConstant(v) || p.IsDeferred(v)) return absl::OkStatus();
      MGE_ASSIGN_OR_RETURN(int32_t item, Need(p, v, PlainLayout(), *p.plan->device));
      p.items[item].uses.push_back(kEnd);
      return absl::OkStatus();
    };
    for (ValueId v : p.graph.node(id).inputs) MGE_RETURN_IF_ERROR(read(v));
    for (ValueId v : p.graph.node(id).captures) MGE_RETURN_IF_ERROR(read(v));
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status ScheduleUnits(Planning& p) {
  for (ValueId v : p.graph.inputs()) {
    if (!p.IsConstant(v)) NewItem(p, v, PlainLayout(), -1);
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
