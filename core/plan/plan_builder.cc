// SPDX-License-Identifier: Apache-2.0
#include "core/plan/plan_builder.h"

#include <algorithm>

#include "core/base/errors.h"
#include "core/ops/op.h"
#include "core/plan/memory/memory_limit.h"
#include "fmt/format.h"

namespace mge {

PlanBuilder::PlanBuilder(const Graph& graph, std::span<const InputType> inputs, std::shared_ptr<const PlanContext> context)
    : graph(graph), input_types(inputs), context(std::move(context)), plan(std::make_shared<Plan>()) {
  plan->device = this->context->devices.front();
  spaces.push_back({plan->device, MGE_MEMORY_DEVICE});
  // Copy queues are fastest with page-locked memory. The calling thread uses it like other host memory.
  for (Device* device : this->context->devices) {
    if (!HasQueues(*device)) continue;
    spaces.front() = {device, MGE_MEMORY_PINNED};
    break;
  }
}

int32_t PlanBuilder::SpaceOf(Device& device) {
  if (!HasQueues(device)) return kHostSpace;
  for (size_t s = 1; s < spaces.size(); ++s) {
    if (spaces[s].device == &device) return static_cast<int32_t>(s);
  }
  spaces.push_back({&device, MGE_MEMORY_DEVICE});
  return static_cast<int32_t>(spaces.size()) - 1;
}

bool PlanBuilder::IsDeferred(ValueId v) const {
  NodeId producer = value(v).producer;
  return producer != kNone && std::binary_search(deferred.begin(), deferred.end(), producer);
}

bool PlanBuilder::HasSlot(ValueId v) const {
  const Value& x = value(v);
  return x.kind == ValueKind::kTensor && x.type.IsStatic() && x.type.dtype != DType::kString;
}

absl::Status PlanBuilder::ReclaimMemory(absl::Status over, const Budget& budget) const {
  if (ErrorId(over) == errors::kOverBudget.id && (*reclaim_memory)()) return absl::OkStatus();
  return NameConstants(std::move(over), *plan, budget);
}

int32_t PlanBuilder::HostItem(ValueId v) const {
  for (int32_t id : versions.at(v)) {
    if (items[id].space == kHostSpace && IsPlain(items[id].layout)) return id;
  }
  return -1;
}

int64_t PlanBuilder::ItemBytes(const Item& item) const {
  const TensorType& type = value(item.value).type;
  auto bytes = LayoutBytes(item.layout, ElementBytes(type.dtype), type.dims);
  MGE_CHECK(bytes.ok());  // ValueSizes checked the plain layout, EnumerateCandidates() the others
  return *bytes;
}

mge_slot PlanBuilder::SlotOf(const Buffer& b, bool on_queue) const {
  MGE_CHECK(b.where != Buffer::Where::kDynamic);
  if (b.where != Buffer::Where::kArena) return {b.base, 0, 0};
  const Arena& arena = plan->arenas[b.arena];
  return {on_queue ? arena.base : arena.host_base, 0, static_cast<uint64_t>(b.offset)};
}

std::string PlanBuilder::Place(const PlannedUnit& d) const {
  if (d.group) return NodePlace(graph.node(d.group->nodes.front()));
  return fmt::format("{} of '{}'", UnitKindName(d.unit.kind), value(items[d.inputs[0]].value).name);
}

HostOperand PlanBuilder::OperandOf(ValueId v) {
  HostOperand o;
  if (v == kNone) return o;
  o.present = true;
  o.kind = value(v).kind;
  o.type = value(v).type;
  if (IsConstant(v)) {
    if (HasSlot(v)) {
      o.location.slot = RawConstant(v);
    } else {
      o.location = DynamicConstant(v);
    }
    return o;
  }
  const Buffer& b = buffers[items[HostItem(v)].buffer];
  if (b.where == Buffer::Where::kDynamic) {
    o.location.kind = Location::Kind::kDynamic;
    o.location.index = b.dynamic;
  } else {
    o.location.slot = SlotOf(b, false);
  }
  return o;
}

}  // namespace mge
