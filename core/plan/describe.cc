// SPDX-License-Identifier: Apache-2.0
#include <set>

#include "core/ops/reports/flops.h"
#include "core/plan/stages.h"
#include "fmt/format.h"

namespace mge {
namespace {

// Adds `count` to `sum`. The sum becomes unknown (negative) if either is.
void AddKnown(double& sum, double count) { sum = sum < 0 || count < 0 ? -1 : sum + count; }

// Records the arithmetic and the bytes of the group. Values between its nodes stay inside of the kernel and are not counted.
void RecordWork(const PlanBuilder& p, const Group& group, Unit& unit) {
  unit.flops = unit.bytes = 0;
  double most = -2;
  std::set<ValueId> seen;  // values that an earlier node of the group wrote or read
  for (NodeId id : group.nodes) {
    const Node& node = p.graph.node(id);
    std::vector<const TensorType*> inputs, outputs;
    for (ValueId v : node.inputs) inputs.push_back(v == kNone ? nullptr : &p.value(v).type);
    for (ValueId v : node.outputs) outputs.push_back(v == kNone ? nullptr : &p.value(v).type);
    const NodeTypes types = {node, inputs, outputs};
    const double flops = FlopsOf(types);
    AddKnown(unit.flops, flops);
    if (flops > most) unit.main_op = node.op, most = flops;
    for (size_t i = 0; i < inputs.size(); ++i) {
      if (inputs[i] && seen.insert(node.inputs[i]).second) AddKnown(unit.bytes, BytesRead(types, static_cast<int>(i)));
    }
    seen.insert(node.outputs.begin(), node.outputs.end());
  }
  for (ValueId v : group.outputs) AddKnown(unit.bytes, BytesOf(p.value(v).type));
}

}  // namespace

constexpr std::string_view kQueueNames[] = {"compute", "copy in", "copy out"};

void DescribeUnit(const PlanBuilder& p, PlannedUnit& d) {
  Unit& unit = d.unit;
  unit.device = d.device->name();
  if (p.OnQueue(d)) unit.queue = kQueueNames[p.plan->queues[d.queue].kind];
  auto text = [&](ValueId v, const mge_layout& layout) {
    const TensorType& type = p.value(v).type;
    std::string out = fmt::format("{} : {}", p.value(v).name, type.ToString());
    if (!IsPlain(layout)) out += fmt::format(" {}", LayoutText(*d.device, layout, type.dtype, type.dims));
    return out;
  };
  if (d.group) {
    for (NodeId id : d.group->nodes) {
      unit.nodes.push_back(p.graph.node(id).name);
      unit.ops.push_back(p.graph.node(id).op);
    }
    for (size_t k = 0; k < d.group->inputs.size(); ++k) {
      unit.inputs.push_back(text(d.group->inputs[k], d.choice->inputs[k]));
    }
    RecordWork(p, *d.group, unit);
    if (unit.kind == Unit::Kind::kAlias && d.inputs[0] >= 0) unit.bytes = 0;  // no step runs
  } else {
    unit.inputs.push_back(text(p.items[d.inputs[0]].value, d.from));
    unit.flops = 0;
    unit.bytes = 2 * BytesOf(p.value(p.items[d.inputs[0]].value).type);
  }
  for (int32_t item : d.outputs) unit.outputs.push_back(text(p.items[item].value, p.items[item].layout));
  if (d.unit.kind == Unit::Kind::kKernel || d.unit.kind == Unit::Kind::kReorder) {
    unit.kernel = d.candidate.id;
    unit.attributes = d.candidate.attributes;
    unit.cost_us = d.candidate.cost_us;
    unit.measured_us = d.candidate.measured_us;
    if (unit.measured_us >= 0 && !d.candidate.fault.empty()) unit.reason += fmt::format("; {}", d.candidate.fault);
    unit.workspace_bytes = static_cast<int64_t>(d.prepared.workspace_bytes);
  } else if (d.unit.kind != Unit::Kind::kCopy) {
    unit.kernel = d.unit.kind == Unit::Kind::kAlias ? "view" : "reference";
    if (d.unit.kind == Unit::Kind::kReference) unit.attributes = kEvaluatorAttributes;
  }
}

}  // namespace mge
