// SPDX-License-Identifier: Apache-2.0
#include "core/plan/describe.h"

#include <set>
#include <string_view>

#include "core/base/duration_text.h"
#include "core/ops/reports/flops.h"
#include "fmt/format.h"

namespace mge {
namespace {

// Adds `count` to `sum`. The sum becomes unknown (negative) if either is.
void AddKnown(double& sum, double count) { sum = sum < 0 || count < 0 ? -1 : sum + count; }

// Records the arithmetic and the bytes of the group. Values between its nodes stay inside of the kernel and are not counted.
void RecordWork(const Graph& graph, const Group& group, Unit& unit) {
  unit.flops = unit.bytes = 0;
  double most = -2;
  std::set<ValueId> seen;  // values that an earlier node of the group wrote or read
  for (NodeId id : group.nodes) {
    const Node& node = graph.node(id);
    std::vector<const TensorType*> inputs, outputs;
    for (ValueId v : node.inputs) inputs.push_back(v == kNone ? nullptr : &graph.value(v).type);
    for (ValueId v : node.outputs) outputs.push_back(v == kNone ? nullptr : &graph.value(v).type);
    const NodeTypes types = {node, inputs, outputs};
    const double flops = FlopsOf(types);
    AddKnown(unit.flops, flops);
    if (flops > most) unit.main_op = node.op, most = flops;
    for (size_t i = 0; i < inputs.size(); ++i) {
      if (inputs[i] && seen.insert(node.inputs[i]).second) AddKnown(unit.bytes, BytesRead(types, static_cast<int>(i)));
    }
    seen.insert(node.outputs.begin(), node.outputs.end());
  }
  for (ValueId v : group.outputs) AddKnown(unit.bytes, BytesOf(graph.value(v).type));
}

void AddRefusals(const std::vector<Refusal>& refusals, Unit& unit) {
  for (const Refusal& r : refusals) unit.alternatives.push_back({.id = r.id, .reason = r.reason});
}

// Records the reason for the chosen candidate, and the reasons against the others.
void ExplainKernel(const Group& group, const GroupChoice& choice, Unit& unit) {
  unit.reason = choice.reason;
  for (size_t c = 0; c < group.candidates.offered.size(); ++c) {
    const OwnedCandidate& other = group.candidates.offered[c];
    if (static_cast<int>(c) == choice.candidate) continue;
    std::string reason = other.cost_us < 0 ? "no estimate" : fmt::format("estimated {}", DurationText(other.cost_us));
    if (other.measured_us >= 0) reason += fmt::format(", measured {}", DurationText(other.measured_us));
    if (!other.fault.empty()) reason += ", " + other.fault;
    unit.alternatives.push_back({other.id, std::move(reason), other.cost_us, other.measured_us});
  }
  AddRefusals(group.candidates.refused, unit);
}

// Records the reason why no kernel computes the group.
void ExplainOther(const Group& group, Unit& unit) {
  unit.reason = group.kind == Unit::Kind::kAlias        ? "the same bytes under another shape"
                : group.kind == Unit::Kind::kCollective ? "exchanges data with the other ranks"
                : group.kind == Unit::Kind::kCopy       ? "the value is copied to the memory that it updates"
                : group.kind == Unit::Kind::kHost       ? "the core computes it on host values"
                : group.refused.empty()                 ? "no backend offers a kernel"
                                                        : "the backends refuse all kernels that they have for it";
  AddRefusals(group.refused, unit);
}

// Records what runs: a kernel, a copy, a view or a reference evaluator.
void RecordKernel(const PlannedUnit& planned, const mge_prepared& prepared, Unit& unit) {
  switch (planned.kind) {
    case Unit::Kind::kKernel:
    case Unit::Kind::kReorder:
      unit.kernel = planned.candidate.id;
      unit.attributes = planned.candidate.attributes;
      unit.cost_us = planned.candidate.cost_us;
      unit.measured_us = planned.candidate.measured_us;
      if (unit.measured_us >= 0 && !planned.candidate.fault.empty()) {
        unit.reason += fmt::format("; {}", planned.candidate.fault);
      }
      unit.workspace_bytes = static_cast<int64_t>(prepared.workspace_bytes);
      break;
    case Unit::Kind::kCopy:
      unit.kernel = planned.copy_name;
      unit.cost_us = planned.copy_us;
      break;
    case Unit::Kind::kCollective: unit.kernel = "collective"; break;
    case Unit::Kind::kAlias: unit.kernel = "view"; break;
    case Unit::Kind::kReference: unit.attributes = kEvaluatorAttributes; [[fallthrough]];
    case Unit::Kind::kHost: unit.kernel = "reference"; break;
  }
}

}  // namespace

Unit DescribeUnit(const Graph& graph, const Schedule& schedule, const PlannedUnit& planned, const mge_prepared& prepared,
                  const std::string& in_place) {
  Unit unit;
  unit.kind = planned.kind;
  unit.device = planned.device->name();
  unit.in_place = in_place;
  if (planned.OnQueue()) unit.queue = QueueName(schedule.queues[planned.queue]);
  auto text = [&](ValueId v, const mge_layout& layout) {
    const TensorType& type = graph.value(v).type;
    std::string out = fmt::format("{} : {}", graph.value(v).name, type.ToString());
    if (!IsPlain(layout)) out += fmt::format(" {}", LayoutText(*planned.device, layout, type.dtype, type.dims));
    return out;
  };
  if (const Group* group = planned.group) {
    unit.fusion = group->claim;
    unit.placement = group->placement;
    for (NodeId id : group->nodes) {
      unit.nodes.push_back(graph.node(id).name);
      unit.ops.push_back(graph.node(id).op);
    }
    for (size_t k = 0; k < group->inputs.size(); ++k) {
      unit.inputs.push_back(text(group->inputs[k], planned.InputLayout(k)));
      unit.input_ids.push_back(group->inputs[k]);
    }
    RecordWork(graph, *group, unit);
    if (planned.kind == Unit::Kind::kAlias && planned.inputs[0] >= 0) unit.bytes = 0;  // no step runs
    if (planned.kind == Unit::Kind::kKernel) {
      ExplainKernel(*group, *planned.choice, unit);
    } else {
      ExplainOther(*group, unit);
    }
  } else {
    const ValueId v = schedule.items[planned.inputs[0]].value;
    unit.inputs.push_back(text(v, planned.from));
    unit.input_ids.push_back(v);
    unit.flops = 0;
    unit.bytes = 2 * BytesOf(graph.value(v).type);
    unit.reason = planned.reason;
  }
  for (int32_t item : planned.outputs) {
    unit.outputs.push_back(text(schedule.items[item].value, schedule.items[item].layout));
    unit.output_ids.push_back(schedule.items[item].value);
  }
  RecordKernel(planned, prepared, unit);
  return unit;
}

}  // namespace mge
