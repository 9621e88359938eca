// SPDX-License-Identifier: Apache-2.0
#include "core/plan/ranges/range_plan.h"

#include <algorithm>
#include <limits>
#include <string>
#include <unordered_map>
#include <utility>

#include "core/plan/kernels/problem_key.h"
#include "core/plan/kernels/unable.h"
#include "core/plan/passes/pass.h"
#include "fmt/format.h"

namespace mge {
namespace {

// Returns whether plans for other sizes can share what this plan has. The parts that it must not have would each need a copy,
// or a memory, per size. Settings and devices that add such parts have no ranges at all (RangePlans::For).
bool CanServeSizes(const Plan& plan) {
  return plan.accesses.empty() && !plan.RunsAlone() && plan.random.empty() && plan.dynamic_count == 0 &&
         plan.bodies.empty() && !plan.red_zones;
}

bool SamePairs(const std::vector<mge_in_place>& a, const std::vector<mge_in_place>& b) {
  return std::ranges::equal(
      a, b, [](const mge_in_place& x, const mge_in_place& y) { return x.output == y.output && x.input == y.input; });
}

// Returns whether the candidates accept the same layouts.
bool SameLayouts(const std::vector<mge_layout>& a, const std::vector<mge_layout>& b) {
  return std::ranges::equal(a, b, [](const mge_layout& x, const mge_layout& y) { return SameLayout(x, y); });
}

// Returns whether both kernels want the same constants packed, in the same named forms.
bool SameForms(const mge_prepared& a, const mge_prepared& b, size_t inputs) {
  for (size_t k = 0; k < inputs; ++k) {
    const uint64_t bytes_a = a.prepack_bytes ? a.prepack_bytes[k] : 0, bytes_b = b.prepack_bytes ? b.prepack_bytes[k] : 0;
    if (bytes_a != bytes_b) return false;
    if (bytes_a == 0) continue;
    if (!a.prepack_forms || !b.prepack_forms) return false;
    const std::string_view form_a(a.prepack_forms[k].data, a.prepack_forms[k].size);
    if (form_a.empty() || form_a != std::string_view(b.prepack_forms[k].data, b.prepack_forms[k].size)) return false;
  }
  return true;
}

// The status of sizes that need a plan of their own.
absl::Status OwnPlan(std::string why) { return absl::UnimplementedError(std::move(why)); }

}  // namespace

RangePlan::RangePlan(std::unique_ptr<RangeGraph> graph, std::shared_ptr<const PlanContext> context)
    : graph_(std::move(graph)), context_(std::move(context)) {}

absl::StatusOr<std::unique_ptr<RangePlan>> RangePlan::Create(std::unique_ptr<RangeGraph> graph,
                                                             std::span<const InputType> largest, std::string text,
                                                             const std::shared_ptr<const PlanContext>& context,
                                                             const StopControl* stop, const ReclaimMemory& reclaim_memory) {
  MGE_ASSIGN_OR_RETURN(const bool set, graph->SetSizes(largest, stop));
  if (!set) return OwnPlan("a shape depends on data or on these sizes");
  std::unique_ptr<RangePlan> out(new RangePlan(std::move(graph), context));
  RangeGraph& ranges = *out->graph_;
  const std::vector<bool> varies = ranges.VaryingValues();
  MGE_ASSIGN_OR_RETURN(std::shared_ptr<Plan> base,
                       PlanGraph(ranges.graph(), ranges.passed().pass_log, ranges.passed().denied_bytes, {}, context, stop,
                                 reclaim_memory, &out->stages_, &varies));
  if (!CanServeSizes(*base)) {
    return OwnPlan("the model has bodies, states, random numbers or shapes that depend on data");
  }
  base->report.ranges = std::move(text);
  out->base_ = std::move(base);
  out->KeepConstants();
  out->IndexUnits();
  return out;
}

void RangePlan::KeepConstants() {
  constexpr int64_t kMaxBytes = int64_t{32} << 20;
  if (ConstantBytes(graph_->graph()) <= kMaxBytes) reader_ = std::make_unique<ConstantReader>(graph_->graph());
}

void RangePlan::IndexUnits() {
  const Graph& graph = graph_->graph();
  const Schedule& schedule = stages_.schedule;
  const size_t values = static_cast<size_t>(graph.value_count());
  const std::vector<OutputCopy>& copies = stages_.memory.output_copies;
  uses_ = CountUses(graph);
  first_kernels_ = stages_.kernels.units;
  units_of_value_.resize(values);
  for (size_t u = 0; u < schedule.units.size(); ++u) {
    const auto add = [&](ValueId v) {
      if (v == kNone || (!units_of_value_[v].empty() && units_of_value_[v].back() == static_cast<int32_t>(u))) return;
      units_of_value_[v].push_back(static_cast<int32_t>(u));
    };
    const PlannedUnit& unit = schedule.units[u];
    if (!unit.group) {
      for (const int32_t item : unit.inputs) add(schedule.items[item].value);
      continue;
    }
    for (const NodeId id : unit.group->nodes) {
      std::ranges::for_each(graph.node(id).inputs, add);
      std::ranges::for_each(graph.node(id).outputs, add);
    }
  }
  for (size_t c = 0; c < copies.size(); ++c) {
    units_of_value_[copies[c].value].push_back(static_cast<int32_t>(schedule.units.size() + c));
  }
  std::unordered_map<std::string, int32_t> families;
  earlier_.resize(schedule.units.size(), -1);
  for (size_t u = 0; u < schedule.units.size(); ++u) {
    const PlannedUnit& unit = schedule.units[u];
    if (!unit.group || !unit.HasKernel() || first_kernels_[u].prepared.has_state) continue;
    std::string family = FamilyOf(*unit.device, ProblemOf(*unit.group, context_->threads), unit.candidate.id);
    const auto at = families.try_emplace(std::move(family), static_cast<int32_t>(u)).first;
    if (at->second != static_cast<int32_t>(u)) earlier_[u] = at->second;
  }
  const size_t units = schedule.units.size() + copies.size();
  stale_.resize(units);
  pieces_.resize(units);
  step_of_unit_.resize(units, -1);
  for (size_t s = 0; s < base_->steps.size(); ++s) step_of_unit_[base_->steps[s].unit] = static_cast<int32_t>(s);
  constant_of_value_.resize(values, -1);
  std::vector<int32_t> constant_of_base(base_->base_count, -1);
  for (size_t c = 0; c < base_->constants.size(); ++c) constant_of_base[base_->constants[c].base] = static_cast<int32_t>(c);
  for (const auto& [place, slot] : stages_.constants.plain) constant_of_value_[place.first] = constant_of_base[slot.base];
  steps_ = base_->steps;
  inputs_ = base_->inputs;
  outputs_ = base_->outputs;
  constants_ = base_->constants;
  states_ = base_->states;
}

absl::Status RangePlan::MarkStale() {
  const Graph& graph = graph_->graph();
  for (const ValueId v : graph_->changed_values()) {
    for (const int32_t u : units_of_value_[v]) stale_[u] = true;
  }
  for (const ValueId v : graph_->changed_values()) {
    if (graph.value(v).dead || !IsConstantValue(graph, v)) continue;
    if (constant_of_value_[v] >= 0) constants_[constant_of_value_[v]].tensor = graph.value(v).constant;
    for (const int32_t u : units_of_value_[v]) {
      if (static_cast<size_t>(u) >= stages_.schedule.units.size()) continue;
      const Group* group = stages_.schedule.units[u].group;
      for (size_t k = 0; k < group->inputs.size(); ++k) {
        unfit_ |= group->inputs[k] == v && stages_.constants.packed.contains({u, k});
      }
    }
  }
  return unfit_ ? OwnPlan("a constant that a kernel packs depends on the sizes") : absl::OkStatus();
}

bool RangePlan::HasProblemOfEarlier(size_t u) const {
  if (earlier_[u] < 0 || !stale_[earlier_[u]]) return false;
  const Graph& graph = graph_->graph();
  const auto same = [&](ValueId v, ValueId w) {
    if (v == w) return true;
    return v != kNone && w != kNone && !IsConstantValue(graph, v) && !IsConstantValue(graph, w) &&
           graph.value(v).type.dims == graph.value(w).type.dims;
  };
  // Attributes that depend on sizes follow from these, since the others were equal.
  return std::ranges::equal(
      stages_.schedule.units[u].group->nodes, stages_.schedule.units[earlier_[u]].group->nodes, [&](NodeId n, NodeId m) {
        const Node &a = graph.node(n), &b = graph.node(m);
        return std::ranges::equal(a.inputs, b.inputs, same) && std::ranges::equal(a.outputs, b.outputs, same);
      });
}

absl::StatusOr<mge_prepared> RangePlan::Remake(size_t u, Piece& piece) {
  PlannedUnit& unit = stages_.schedule.units[u];
  const Graph& graph = graph_->graph();
  std::unique_ptr<ReorderProblem> reorder;
  mge_problem problem;
  if (unit.group) {
    auto& group = const_cast<Group&>(*unit.group);  // a group of stages_
    group.abi = std::make_unique<AbiGraph>(graph, group.nodes, uses_);
    problem = ProblemOf(group, context_->threads);
    const bool tuned = context_->kernels.Tunes(*unit.device, graph, group.nodes);
    mge_constraints constraints = context_->kernels.ConstraintsOn(*unit.device, tuned);
    // A backend need not describe such kernels if the chosen one is none of them.
    if (!(unit.candidate.attributes & MGE_KERNEL_COMPILES)) constraints.forbid |= MGE_KERNEL_COMPILES;
    MGE_ASSIGN_OR_RETURN(CandidateList list, CandidatesOf(*context_, *unit.device, problem, constraints));
    const auto same = [&](const OwnedCandidate& c) {
      return c.id == unit.candidate.id && SameLayouts(c.inputs, unit.candidate.inputs) &&
             SameLayouts(c.outputs, unit.candidate.outputs) && SamePairs(c.in_place, unit.candidate.in_place);
    };
    const auto at = std::ranges::find_if(list.offered, same);
    if (at == list.offered.end()) {
      return OwnPlan(fmt::format("{}: its kernel {} is not offered for these sizes, or in another form",
                                 PlaceOf(graph, stages_.schedule, unit), unit.candidate.id));
    }
    unit.candidate = std::move(*at);
  } else {
    const TensorType& type = graph.value(stages_.schedule.items[unit.inputs[0]].value).type;
    reorder = std::make_unique<ReorderProblem>(type, unit.from, unit.to, context_->threads);
    problem = *reorder->problem();
  }
  mge_prepared prepared = {};
  bool rebound = false;
  MGE_ASSIGN_OR_RETURN(KernelHandle kernel, MakeKernel(*context_, unit, problem, prepared, rebound));
  piece.kernels.push_back(std::move(kernel));
  return prepared;
}

absl::Status RangePlan::Renew(size_t u, Piece& piece) {
  const PlannedUnit& unit = stages_.schedule.units[u];
  PreparedKernel& known = stages_.kernels.units[u];
  const mge_prepared& first = first_kernels_[u].prepared;
  mge_prepared prepared;
  if (HasProblemOfEarlier(u)) {
    prepared = stages_.kernels.units[earlier_[u]].prepared;
  } else {
    MGE_ASSIGN_OR_RETURN(prepared, Remake(u, piece));
  }
  const int32_t workspace = stages_.memory.workspaces[u];
  const auto room = static_cast<uint64_t>(workspace < 0 ? 0 : stages_.memory.buffers[workspace].bytes);
  if (prepared.workspace_bytes > room || prepared.has_state != first.has_state || prepared.random_blocks ||
      !SameForms(prepared, first, unit.inputs.size())) {
    return OwnPlan(fmt::format("{}: its kernel {} has other needs for these sizes",
                               PlaceOf(graph_->graph(), stages_.schedule, unit), unit.candidate.id));
  }
  if (prepared.has_state) states_[known.state_index] = prepared.kernel;
  known.prepared = prepared;
  return absl::OkStatus();
}

absl::Status RangePlan::CheckFit(size_t u) const {
  const Schedule& schedule = stages_.schedule;
  const MemoryPlan& memory = stages_.memory;
  const PlannedUnit& unit = schedule.units[u];
  for (const int32_t output : unit.outputs) {
    const int64_t bytes = ItemBytes(graph_->graph(), schedule.items[output]);
    const Buffer& buffer = memory.BufferOf(output);
    bool fits = buffer.where != Buffer::Where::kArena || bytes <= buffer.bytes;
    for (const int32_t input : unit.inputs) {  // in place, or a view
      if (input < 0 || memory.item_buffers[input] != memory.item_buffers[output]) continue;
      fits &= ItemBytes(graph_->graph(), schedule.items[input]) == bytes;
    }
    if (!fits) {
      return OwnPlan(fmt::format("{}: an output does not fit where it lies for the largest sizes",
                                 PlaceOf(graph_->graph(), schedule, unit)));
    }
  }
  return absl::OkStatus();
}

absl::Status RangePlan::BindStale(const std::shared_ptr<Piece>& piece, const StopControl* stop) {
  std::vector<size_t> units, copies;
  const size_t scheduled = stages_.schedule.units.size();
  for (size_t u = 0; u < stale_.size(); ++u) {
    if (!stale_[u] || step_of_unit_[u] < 0) continue;
    if (u < scheduled) {
      units.push_back(u);
    } else {
      copies.push_back(u - scheduled);
    }
  }
  MGE_ASSIGN_OR_RETURN(piece->bound, BindSomeSteps(graph_->graph(), stages_.schedule, stages_.kernels, stages_.memory,
                                                   stages_.constants, context_, stop, units, copies));
  for (const Step& step : piece->bound.steps) {
    steps_[step_of_unit_[step.unit]] = step;
    pieces_[step.unit] = piece;
  }
  stale_.assign(stale_.size(), false);
  return absl::OkStatus();
}

void RangePlan::UpdateTypes(std::vector<BoundValue>& bound, const std::vector<ValueId>& values) const {
  for (size_t i = 0; i < bound.size(); ++i) {
    const Shape& dims = graph_->graph().value(values[i]).type.dims;
    std::ranges::copy(dims, bound[i].type.dims.begin());
  }
}

std::shared_ptr<Plan> RangePlan::Assemble(const Piece& piece) const {
  auto plan = std::make_shared<Plan>();
  plan->device = base_->device;
  plan->segments = base_->segments;
  plan->steps = steps_;
  plan->own_steps = piece.bound.steps.size();
  plan->units = base_->units;
  plan->access_variables = base_->access_variables;
  plan->operation_steps = base_->operation_steps;
  plan->inputs = inputs_;
  plan->outputs = outputs_;
  plan->base_count = base_->base_count;
  plan->constants = constants_;
  plan->states = states_;
  plan->state_apis = base_->state_apis;
  plan->state_memory = base_->state_memory;
  plan->arenas = base_->arenas;
  plan->buffers = base_->buffers;
  plan->needs = base_->needs;
  plan->report = base_->report;
  plan->report.measured_constant_bytes = 0;
  plan->shared.push_back(base_);
  for (const std::shared_ptr<Piece>& used : pieces_) {
    if (used && std::ranges::find(plan->shared, used) == plan->shared.end()) plan->shared.push_back(used);
  }
  return plan;
}

absl::StatusOr<std::shared_ptr<Plan>> RangePlan::Derive(std::span<const InputType> inputs, const StopControl* stop) {
  MGE_ASSIGN_OR_RETURN(const bool set, graph_->SetSizes(inputs, stop));
  MGE_RETURN_IF_ERROR(MarkStale());
  if (!set) return OwnPlan("a shape depends on these sizes in another way");
  auto piece = std::make_shared<Piece>();
  for (size_t u = 0; u < stages_.schedule.units.size(); ++u) {
    if (!stale_[u]) continue;
    MGE_RETURN_IF_ERROR(CheckFit(u));
    if (!stages_.schedule.units[u].HasKernel()) continue;
    MGE_RETURN_IF_ERROR(CheckStop(stop));
    MGE_RETURN_IF_ERROR(Renew(u, *piece));
  }
  MGE_RETURN_IF_ERROR(BindStale(piece, stop));
  UpdateTypes(inputs_, graph_->graph().inputs());
  UpdateTypes(outputs_, graph_->graph().outputs());
  if (const std::shared_ptr<const Plan> latest = latest_.lock()) GiveUpIdle(*latest);
  std::shared_ptr<Plan> plan = Assemble(*piece);
  plan->new_arenas = !served_;
  served_ = true;
  latest_ = plan;
  return plan;
}

int64_t RangePlan::RunsUntilExact(double more_work) const {
  constexpr double kUnitUs = 60, kCompileUs = 400;  // to plan a unit, and to compile the code of a kernel
  constexpr double kLittle = 0.03;
  const Cover& cover = stages_.chosen.cover;
  double run_us = 0;
  for (const Unit& unit : base_->units) run_us += std::max(unit.cost_us, 0.0);
  const double saved_us = more_work * run_us + cover.avoided_us;
  if (saved_us <= kLittle * run_us) return std::numeric_limits<int64_t>::max();
  const double made_us = kUnitUs * static_cast<double>(base_->units.size()) + kCompileUs * cover.avoided_compiling;
  return static_cast<int64_t>(made_us / saved_us);
}

}  // namespace mge
