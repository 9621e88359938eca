// SPDX-License-Identifier: Apache-2.0
#include "core/plan/draft.h"

#include <algorithm>

#include "core/base/errors.h"
#include "core/ops/op.h"
#include "fmt/format.h"

namespace mge {

Planning::Planning(const Graph& graph, std::span<const InputType> inputs, std::shared_ptr<const PlanContext> context)
    : graph(graph), input_types(inputs), context(std::move(context)), plan(std::make_shared<Plan>()) {
  plan->device = this->context->devices.front();
}

bool Planning::IsDeferred(ValueId v) const {
  NodeId producer = value(v).producer;
  return producer != kNone && std::binary_search(deferred.begin(), deferred.end(), producer);
}

bool Planning::HasSlot(ValueId v) const {
  const Value& x = value(v);
  return x.kind == ValueKind::kTensor && x.type.IsStatic() && x.type.dtype != DType::kString;
}

int32_t Planning::PlainItem(ValueId v) const {
  for (int32_t id : versions.at(v)) {
    if (IsPlain(items[id].layout)) return id;
  }
  return -1;
}

int64_t Planning::ItemBytes(const Item& item) const {
  const TensorType& type = value(item.value).type;
  auto bytes = LayoutBytes(item.layout, ElementBytes(type.dtype), type.dims);
  return bytes.ok() ? *bytes : 0;  // judged when the candidate was prepared
}

mge_slot Planning::SlotOf(const Buffer& b) const {
  MGE_CHECK(b.where != Buffer::Where::kLate);
  if (b.where == Buffer::Where::kArena) return {kArenaBase, 0, static_cast<uint64_t>(b.offset)};
  return {b.base, 0, 0};
}

std::string Planning::Place(const Draft& d) const {
  if (d.group) return NodePlace(graph.node(d.group->nodes.front()));
  return fmt::format("reorder of '{}'", value(items[d.inputs[0]].value).name);
}

HostOperand Planning::OperandOf(ValueId v) {
  HostOperand o;
  if (v == kNone) return o;
  o.present = true;
  o.kind = value(v).kind;
  o.type = value(v).type;
  if (IsConstant(v)) {
    if (HasSlot(v)) {
      o.location.slot = RawConstant(v);
    } else {
      o.location = LateConstant(v);
    }
    return o;
  }
  const Buffer& b = buffers[items[PlainItem(v)].buffer];
  if (b.where == Buffer::Where::kLate) {
    o.location.kind = Location::Kind::kLate;
    o.location.index = b.late;
  } else {
    o.location.slot = SlotOf(b);
  }
  return o;
}

}  // namespace mge
