// SPDX-License-Identifier: Apache-2.0
#include "core/plan/schedule.h"

#include <algorithm>

#include "core/ops/op.h"
#include "core/plan/lanes.h"
#include "core/plan/memory/buffers.h"
#include "core/plan/transfers.h"
#include "fmt/format.h"

namespace mge {
namespace {

// Returns the device in whose memory the alias's input is. The alias shares its bytes.
Device& DeviceOfAlias(const Graph& graph, const Schedule& schedule, const PlanContext& context, const Group& group) {
  if (IsConstantValue(graph, group.inputs[0])) return HostStepDevice(context);
  Device* made_by = schedule.items[schedule.versions.at(group.inputs[0]).front()].device;
  return made_by ? *made_by : HostStepDevice(context);
}

absl::Status ScheduleGroup(const Graph& graph, const PlanContext& context, const Group& group, const GroupChoice& choice,
                           ScheduleBuilder& builder) {
  PlannedUnit unit;
  unit.kind = group.kind;
  unit.device = group.kind == Unit::Kind::kAlias ? &DeviceOfAlias(graph, builder.schedule(), context, group) : group.device;
  unit.group = &group;
  unit.choice = &choice;
  if (group.kind == Unit::Kind::kCopy) unit.copy_name = "copy";
  if (group.kind == Unit::Kind::kKernel) unit.candidate = group.candidates.offered[choice.candidate];
  const int32_t space = builder.SpaceOf(*unit.device);
  for (size_t k = 0; k < group.inputs.size(); ++k) {
    MGE_ASSIGN_OR_RETURN(int32_t item, builder.TransferTo(group.inputs[k], choice.inputs[k], *unit.device));
    unit.inputs.push_back(item);
  }
  const bool on_device = group.kind == Unit::Kind::kKernel || group.kind == Unit::Kind::kCollective || group.target >= 0;
  if (on_device && HasQueues(*unit.device)) {
    unit.queue = builder.QueueOf(*unit.device, MGE_QUEUE_COMPUTE);
  }
  const int32_t index = static_cast<int32_t>(builder.schedule().units.size());
  for (size_t k = 0; k < group.outputs.size(); ++k) {
    unit.outputs.push_back(builder.AddItem(group.outputs[k], choice.outputs[k], space, unit.device, index));
  }
  builder.AddUnit(std::move(unit));
  return absl::OkStatus();
}

// Adds the reorders and copies for the outputs and for the inputs of the continuation. Both are plain and in host memory,
// except outputs that the caller wants on a device.
absl::Status ScheduleEnds(const Graph& graph, const PlanContext& context, const Cover& cover, const IoPlaces& places,
                          ScheduleBuilder& builder) {
  auto read = [&](ValueId v) -> absl::Status {
    if (v == kNone || IsConstantValue(graph, v) || cover.IsDeferred(v)) return absl::OkStatus();
    MGE_ASSIGN_OR_RETURN(int32_t item, builder.TransferTo(v, PlainLayout(), HostStepDevice(context)));
    builder.KeepToEnd(item);
    return absl::OkStatus();
  };
  std::vector<int32_t> device_outputs;
  for (size_t i = 0; i < graph.outputs().size(); ++i) {
    const ValueId v = graph.outputs()[i];
    const IoPlace place = places.output(i);
    if (!place.on_device() || IsConstantValue(graph, v) || cover.IsDeferred(v) || !HasSlot(graph.value(v))) {
      MGE_RETURN_IF_ERROR(read(v));
      device_outputs.push_back(-1);
      continue;
    }
    MGE_ASSIGN_OR_RETURN(int32_t item, builder.DeviceOutput(v, *place.device));
    device_outputs.push_back(item);
  }
  builder.SetOutputs(std::move(device_outputs), places);
  for (NodeId id : cover.deferred) {
    for (ValueId v : graph.node(id).inputs) MGE_RETURN_IF_ERROR(read(v));
    for (ValueId v : graph.node(id).captures) MGE_RETURN_IF_ERROR(read(v));
  }
  return absl::OkStatus();
}

}  // namespace

int32_t Schedule::SpaceOf(const Device& device) const {
  if (!HasQueues(device)) return kHostSpace;
  auto at = std::find_if(spaces.begin() + 1, spaces.end(), [&](const Space& s) { return s.device == &device; });
  MGE_CHECK(at != spaces.end());
  return static_cast<int32_t>(at - spaces.begin());
}

int32_t Schedule::HostItem(ValueId v) const {
  const std::vector<int32_t>& all = versions.at(v);
  auto at = std::find_if(all.begin(), all.end(),
                         [&](int32_t id) { return items[id].space == kHostSpace && IsPlain(items[id].layout); });
  MGE_CHECK(at != all.end());
  return *at;
}

absl::StatusOr<Schedule> ScheduleUnits(const Graph& graph, const ChosenKernels& chosen, const PlanContext& context,
                                       const IoPlaces& places, const StopControl* stop) {
  ScheduleBuilder builder(graph, context);
  for (size_t i = 0; i < graph.inputs().size(); ++i) {
    if (!IsConstantValue(graph, graph.inputs()[i])) builder.AddInput(graph.inputs()[i], places.input(i));
  }
  for (ValueId v = 0; v < graph.value_count(); ++v) {
    const Value& value = graph.value(v);
    if (value.role != Role::kState || value.dead) continue;
    Device& home = *context.devices.front();
    MGE_RETURN_IF_ERROR(home.Open());
    builder.AddItem(v, PlainLayout(), builder.SpaceOf(home), &home, -1);
  }
  for (size_t g = 0; g < chosen.cover.groups.size(); ++g) {
    MGE_RETURN_IF_ERROR(CheckStop(stop));
    MGE_RETURN_IF_ERROR(ScheduleGroup(graph, context, chosen.cover.groups[g], chosen.choices[g], builder));
  }
  MGE_RETURN_IF_ERROR(ScheduleEnds(graph, context, chosen.cover, places, builder));
  Schedule schedule = builder.Finish();
  SpreadKernels(schedule, context);
  return schedule;
}

int64_t ItemBytes(const Graph& graph, const Item& item) {
  const TensorType& type = graph.value(item.value).type;
  auto bytes = LayoutBytes(item.layout, ElementBytes(type.dtype), type.dims);
  MGE_CHECK(bytes.ok());  // ValueSizes checked the plain layout, EnumerateCandidates() the others
  return *bytes;
}

std::string QueueOrLane(const Schedule& schedule, const PlannedUnit& unit) {
  return unit.OnQueue() ? QueueName(schedule.queues[static_cast<size_t>(unit.queue)]) : fmt::format("lane {}", unit.lane);
}

std::string PlaceOf(const Graph& graph, const Schedule& schedule, const PlannedUnit& unit) {
  if (unit.group) return NodePlace(graph.node(unit.group->nodes.front()));
  return fmt::format("{} of '{}'", UnitKindName(unit.kind), graph.value(schedule.items[unit.inputs[0]].value).name);
}

}  // namespace mge
