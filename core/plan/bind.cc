// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "core/kernel/kernel.h"
#include "core/plan/stages.h"

namespace mge {
namespace {

template <typename T>
T* NewArgs(Plan& plan, size_t bytes = sizeof(T)) {
  plan.args.push_back(std::make_unique<std::byte[]>(bytes));
  return reinterpret_cast<T*>(plan.args.back().get());
}

void AddStep(Plan& plan, mge_step_fn fn, const void* args, int32_t unit) { plan.steps.push_back({fn, args, unit}); }

void BindCopy(Plan& plan, mge_slot from, mge_slot to, int64_t bytes, int32_t unit) {
  auto* args = NewArgs<CopyStepArgs>(plan);
  *args = {from, to, static_cast<uint64_t>(bytes)};
  AddStep(plan, RunCopyStep, args, unit);
}

absl::Status BindUnit(PlanBuilder& p, size_t u, int32_t unit) {
  PlannedUnit& d = p.planned_units[u];
  int32_t space = p.SpaceOf(*d.device);
  std::vector<mge_slot> inputs, outputs;
  std::vector<const mge_layout*> in_layouts, out_layouts;
  for (size_t k = 0; k < d.inputs.size(); ++k) {
    if (d.inputs[k] >= 0) {
      inputs.push_back(p.SlotOf(d, d.inputs[k]));
    } else if (auto it = p.packed.find({u, k}); it != p.packed.end()) {
      inputs.push_back(it->second);
    } else {
      inputs.push_back(p.RawConstant(d.group->inputs[k], space));
    }
    in_layouts.push_back(d.group ? &d.choice->inputs[k] : &d.from);
  }
  for (size_t k = 0; k < d.outputs.size(); ++k) {
    outputs.push_back(p.SlotOf(d, d.outputs[k]));
    out_layouts.push_back(d.group ? &d.choice->outputs[k] : &d.to);
  }
  mge_slot workspace = {};
  if (d.workspace_buffer >= 0) workspace = p.SlotOf(p.buffers[d.workspace_buffer], p.OnQueue(d));
  mge_binding binding = {sizeof(mge_binding), d.state_index,     inputs.data(),     outputs.data(),
                         workspace,           in_layouts.data(), out_layouts.data()};
  void* args = NewArgs<std::byte>(*p.plan, std::max<size_t>(d.prepared.args_bytes, 1));
  absl::StatusOr<mge_step_fn> fn = BindKernel(*d.device, d.candidate, d.prepared.kernel, binding, args);
  if (!fn.ok()) return AddWhere(fn.status(), p.Place(d));
  AddStep(*p.plan, *fn, args, unit);
  return absl::OkStatus();
}

// Creates the step of a copy that the schedule added, on a queue or in the calling thread.
void BindTransfer(PlanBuilder& p, const PlannedUnit& d, int32_t unit) {
  mge_slot from = p.SlotOf(d, d.inputs[0]), to = p.SlotOf(d, d.outputs[0]);
  int64_t bytes = p.ItemBytes(p.items[d.outputs[0]]);
  if (!p.OnQueue(d)) return BindCopy(*p.plan, from, to, bytes, unit);
  auto* args = NewArgs<QueueCopyArgs>(*p.plan);
  *args = {from, to, static_cast<uint64_t>(bytes), d.device->queue_api(), nullptr, nullptr};
  if (d.peer) {
    args->to_device = d.device->handle();
    args->from_device = p.spaces[p.items[d.inputs[0]].space].device->handle();
  }
  AddStep(*p.plan, RunQueueCopyStep, args, unit);
}

absl::Status BindHost(PlanBuilder& p, size_t u, int32_t unit) {
  PlannedUnit& d = p.planned_units[u];
  auto args = std::make_unique<HostStepArgs>();
  args->node = p.graph.node(d.group->nodes[0]);
  for (ValueId v : args->node.inputs) {
    args->inputs.push_back(p.OperandOf(v));
    args->check_inputs |= args->inputs.back().location.kind == Location::Kind::kDynamic;
  }
  for (ValueId v : args->node.outputs) args->outputs.push_back(p.OperandOf(v));
  for (ValueId v : args->node.captures) args->captures.push_back(p.OperandOf(v));
  for (const auto& [name, attribute] : args->node.attrs) {
    const GraphPtr* body = std::get_if<GraphPtr>(&attribute);
    if (!body || !*body) continue;
    MGE_ASSIGN_OR_RETURN(BodyProgram program, MakeBody(p, **body, args->node));
    program.name = name;
    p.plan->bodies.push_back({unit, name, program.program});
    args->bodies.push_back(std::move(program));
  }
  if (d.unit.kind == Unit::Kind::kReference) ++p.plan->reference_steps;
  AddStep(*p.plan, RunHostStep, args.get(), unit);
  p.plan->host_args.push_back(std::move(args));
  return absl::OkStatus();
}

// Adds the last steps: copies into outputs that no step could write itself.
void BindOutputCopies(PlanBuilder& p) {
  for (const OutputCopy& c : p.output_copies) {
    const TensorType& type = p.value(c.value).type;
    mge_slot from = c.item < 0 ? p.RawConstant(c.value) : p.SlotOf(p.buffers[p.items[c.item].buffer], false);
    Unit unit;
    unit.kind = Unit::Kind::kCopy;
    unit.device = HostStepDevice(*p.context).name();
    unit.kernel = "copy";
    unit.flops = 0;
    unit.bytes = 2 * static_cast<double>(Elements(type.dims) * ElementBytes(type.dtype));
    unit.reason = c.item >= 0 && p.buffers[p.items[c.item].buffer].shared
                      ? "an output, from page-locked memory to where the caller wants it"
                      : "an output that is an input, a constant, or given twice";
    unit.inputs = {p.value(c.value).name + " : " + type.ToString()};
    unit.outputs = {p.plan->outputs[c.output].name};
    BindCopy(*p.plan, from, p.plan->outputs[c.output].location.slot, Elements(type.dims) * ElementBytes(type.dtype),
             static_cast<int32_t>(p.plan->units.size()));
    p.plan->units.push_back(std::move(unit));
  }
}

}  // namespace

absl::Status BindSteps(PlanBuilder& p) {
  for (size_t u = 0; u < p.planned_units.size(); ++u) {
    PlannedUnit& d = p.planned_units[u];
    int32_t unit = static_cast<int32_t>(p.plan->units.size());
    DescribeUnit(p, d);
    switch (d.unit.kind) {
      case Unit::Kind::kKernel:
      case Unit::Kind::kReorder: MGE_RETURN_IF_ERROR(BindUnit(p, u, unit)); break;
      case Unit::Kind::kReference:
      case Unit::Kind::kHost: MGE_RETURN_IF_ERROR(BindHost(p, u, unit)); break;
      case Unit::Kind::kAlias:
        if (d.inputs[0] < 0) {
          BindCopy(*p.plan, p.RawConstant(d.group->inputs[0]), p.SlotOf(d, d.outputs[0]), p.ItemBytes(p.items[d.outputs[0]]),
                   unit);
        }
        break;
      case Unit::Kind::kCopy: BindTransfer(p, d, unit); break;
    }
    p.plan->units.push_back(std::move(d.unit));
  }
  BindOutputCopies(p);
  return absl::OkStatus();
}

}  // namespace mge
