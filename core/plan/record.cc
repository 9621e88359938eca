// SPDX-License-Identifier: Apache-2.0
#include "core/plan/stages.h"
#include "fmt/format.h"

namespace mge {

constexpr std::string_view kQueueNames[] = {"compute", "copy in", "copy out"};

void RecordUnit(const Planning& p, Draft& d) {
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
  } else {
    unit.inputs.push_back(text(p.items[d.inputs[0]].value, d.from));
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
    if (d.unit.kind == Unit::Kind::kReference) unit.attributes = MGE_KERNEL_REFERENCE | MGE_KERNEL_DETERMINISTIC;
  }
}

}  // namespace mge
