// SPDX-License-Identifier: Apache-2.0
#include "core/plan/value_records.h"

#include <unordered_map>

namespace mge {
namespace {

RecordedValue RecordOf(const Graph& graph, ValueId v) {
  const Value& value = graph.value(v);
  return {.id = v, .name = value.name, .type = value.type, .layout = PlainLayout()};
}

RecordedValue RecordOf(const Graph& graph, const Schedule& schedule, const MemoryPlan& memory, int32_t item) {
  const Item& at = schedule.items[item];
  RecordedValue record = RecordOf(graph, at.value);
  record.layout = at.layout;
  record.last_read = at.last_use;
  const Buffer& buffer = memory.BufferOf(item);
  if (at.space != kHostSpace) {
    record.device = schedule.spaces[at.space].device;
    record.location.slot = memory.SlotOf(buffer, /*on_queue=*/true);
  } else {
    record.location = memory.LocationOf(buffer);
  }
  if (record.location.kind == Location::Kind::kSlot) record.bytes = ItemBytes(graph, at);
  return record;
}

}  // namespace

bool RecordsValues(const Snapshot& settings) {
  return !settings.Get<kDebugDumpDir>().empty() || settings.Get<kDebugWatchValue>() >= 0;
}

ValueRecords RecordValues(const Graph& graph, const Schedule& schedule, const MemoryPlan& memory) {
  ValueRecords out;
  for (size_t item = 0; item < schedule.items.size(); ++item) {
    out.values.push_back(RecordOf(graph, schedule, memory, static_cast<int32_t>(item)));
  }
  std::unordered_map<ValueId, int32_t> constants;
  auto constant = [&](ValueId v) {
    const auto [at, fresh] = constants.emplace(v, static_cast<int32_t>(out.values.size()));
    if (fresh) {
      out.values.push_back(RecordOf(graph, v));
      out.values.back().constant = graph.value(v).constant;
    }
    return at->second;
  };
  std::vector<int32_t> writer(schedule.items.size(), -1);  // by item: the unit that writes its bytes
  for (size_t u = 0; u < schedule.units.size(); ++u) {
    const PlannedUnit& unit = schedule.units[u];
    RecordedUnit& record = out.units.emplace_back();
    for (size_t k = 0; k < unit.inputs.size(); ++k) {
      record.inputs.push_back(unit.inputs[k] >= 0 ? unit.inputs[k] : constant(unit.group->inputs[k]));
    }
    const bool view = unit.kind == Unit::Kind::kAlias && unit.inputs[0] >= 0;
    for (const int32_t item : unit.outputs) {
      writer[item] = view ? writer[unit.inputs[0]] : static_cast<int32_t>(u);
      if (writer[item] >= 0) out.units[writer[item]].outputs.push_back(item);
    }
  }
  return out;
}

}  // namespace mge
