// SPDX-License-Identifier: Apache-2.0
#include "core/plan/transfers.h"

#include <algorithm>

#include "core/base/errors.h"
#include "core/plan/layout/reorder.h"
#include "core/plugin/abi_call.h"
#include "core/plugin/device_link.h"
#include "fmt/format.h"

namespace mge {

ScheduleBuilder::ScheduleBuilder(const Graph& graph, const PlanContext& context) : graph_(graph), context_(context) {
  schedule_.spaces.push_back({context.devices.front(), MGE_MEMORY_DEVICE});
  // Copy queues are fastest with page-locked memory. The calling thread uses it like other host memory.
  for (Device* device : context.devices) {
    if (!HasQueues(*device)) continue;
    schedule_.spaces.front() = {device, MGE_MEMORY_PINNED};
    break;
  }
}

Schedule ScheduleBuilder::Finish() {
  for (Item& item : schedule_.items) {
    for (int32_t u : item.uses) item.last_use = std::max(item.last_use, u);
  }
  return std::move(schedule_);
}

void ScheduleBuilder::AddInput(ValueId v, const IoPlace& place) {
  const int32_t space = place.on_device() ? SpaceOf(*place.device) : kHostSpace;
  const int32_t id = AddItem(v, PlainLayout(), space, place.on_device() ? place.device : nullptr, -1);
  schedule_.items[id].pinned = place.pinned;
}

absl::StatusOr<int32_t> ScheduleBuilder::DeviceOutput(ValueId v, Device& device) {
  MGE_ASSIGN_OR_RETURN(int32_t id, TransferTo(v, PlainLayout(), device));
  const int32_t root = RootOf(id);
  if (item(root).made_by < 0 || context_.settings->Get<kDebugCheckMemory>() || taken_.contains(root)) {
    PlannedUnit unit = Between(Unit::Kind::kCopy, id, device);
    unit.queue = QueueOf(device, MGE_QUEUE_COMPUTE);
    unit.copy_name = "device copy";
    unit.reason = "an output in the caller's memory that no step can write directly";
    id = AddTransfer(std::move(unit), item(id).space);
  }
  taken_.insert(RootOf(id));
  KeepToEnd(id);
  return id;
}

void ScheduleBuilder::SetOutputs(std::vector<int32_t> device_outputs, IoPlaces places) {
  schedule_.device_outputs = std::move(device_outputs);
  schedule_.places = std::move(places);
}

int32_t ScheduleBuilder::AddItem(ValueId v, const mge_layout& layout, int32_t space, Device* device, int32_t unit) {
  schedule_.items.push_back({.value = v, .layout = layout, .space = space, .device = device, .made_by = unit});
  const int32_t id = static_cast<int32_t>(schedule_.items.size()) - 1;
  schedule_.versions[v].push_back(id);
  return id;
}

void ScheduleBuilder::AddUnit(PlannedUnit unit) {
  const int32_t index = static_cast<int32_t>(schedule_.units.size());
  for (int32_t item : unit.inputs) {
    if (item >= 0) schedule_.items[item].uses.push_back(index);
  }
  schedule_.units.push_back(std::move(unit));
}

int32_t ScheduleBuilder::SpaceOf(Device& device) {
  std::vector<Space>& spaces = schedule_.spaces;
  auto at = spaces.begin() + kHostSpace;
  if (HasQueues(device)) {
    at = std::find_if(spaces.begin() + 1, spaces.end(), [&](const Space& s) { return s.device == &device; });
    if (at == spaces.end()) at = spaces.insert(at, {&device, MGE_MEMORY_DEVICE});
  }
  at->alignment = std::max(at->alignment, device.BufferAlignment());
  return static_cast<int32_t>(at - spaces.begin());
}

int32_t ScheduleBuilder::QueueOf(Device& device, int32_t kind) {
  std::vector<PlanQueue>& queues = schedule_.queues;
  for (size_t q = 0; q < queues.size(); ++q) {
    if (queues[q].device == &device && queues[q].kind == kind) return static_cast<int32_t>(q);
  }
  queues.push_back({&device, kind, 0});
  return static_cast<int32_t>(queues.size()) - 1;
}

// Returns a new unit, which reads item `source` and writes the same value in another layout or space.
PlannedUnit ScheduleBuilder::Between(Unit::Kind kind, int32_t source, Device& device) const {
  PlannedUnit unit;
  unit.kind = kind;
  unit.device = &device;
  unit.from = unit.to = item(source).layout;
  unit.inputs = {source};
  return unit;
}

// Adds a reorder or copy that writes to `space`. Returns the new item.
int32_t ScheduleBuilder::AddTransfer(PlannedUnit unit, int32_t space) {
  const int32_t index = static_cast<int32_t>(schedule_.units.size());
  const int32_t made = AddItem(item(unit.inputs[0]).value, unit.to, space, unit.device, index);
  unit.outputs = {made};
  AddUnit(std::move(unit));
  return made;
}

absl::StatusOr<int32_t> ScheduleBuilder::Reorder(int32_t source, const mge_layout& layout, Device& device) {
  const Value& value = graph_.value(item(source).value);
  PlannedUnit unit = Between(Unit::Kind::kReorder, source, device);
  unit.to = layout;
  if (HasQueues(device)) unit.queue = QueueOf(device, MGE_QUEUE_COMPUTE);
  absl::StatusOr<OwnedCandidate> reorder = ChooseReorder(context_, device, value.type, unit.from, unit.to);
  if (!reorder.ok()) return AddWhere(reorder.status(), fmt::format("value '{}'", value.name));
  unit.candidate = *std::move(reorder);
  unit.reason = fmt::format("'{}' is {} and wanted {}", value.name, LayoutText(unit.from), LayoutText(unit.to));
  return AddTransfer(std::move(unit), item(source).space);
}

std::string ScheduleBuilder::SpaceName(int32_t space) const {
  return space == kHostSpace ? "the host" : schedule_.spaces[space].device->name();
}

// Adds one copy between two memories and returns the new item.
int32_t ScheduleBuilder::Copy(int32_t source, int32_t space, const Device& reader, std::string_view way, double us) {
  const int32_t from = item(source).space;
  const bool peer = from != kHostSpace && space != kHostSpace;
  const bool out = space == kHostSpace;
  Device& device = *schedule_.spaces[out ? from : space].device;
  PlannedUnit unit = Between(Unit::Kind::kCopy, source, device);
  unit.queue = QueueOf(device, peer ? MGE_QUEUE_COMMUNICATION : out ? MGE_QUEUE_COPY_OUT : MGE_QUEUE_COPY_IN);
  unit.peer = peer;
  unit.copy_name = peer ? "peer copy" : out ? "copy to host" : "copy from host";
  unit.copy_us = us;
  unit.reason = fmt::format("{} reads it; {} bytes from {} to {}{}", reader.name(), ItemBytes(graph_, item(source)),
                            SpaceName(from), SpaceName(space), way);
  return AddTransfer(std::move(unit), space);
}

// Returns the item whose memory the item shares: itself, or the item of which it is an alias.
int32_t ScheduleBuilder::RootOf(int32_t id) {
  roots_.resize(schedule_.items.size(), -1);
  std::vector<int32_t> visited;
  int32_t root = id;
  for (int32_t u; roots_[root] < 0 && (u = item(root).made_by) >= 0; root = schedule_.units[u].inputs[0]) {
    if (schedule_.units[u].kind != Unit::Kind::kAlias || schedule_.units[u].inputs[0] < 0) break;
    visited.push_back(root);
  }
  if (roots_[root] >= 0) root = roots_[root];
  for (int32_t item_id : visited) roots_[item_id] = root;
  return root;
}

// Returns true if the item is in the caller's plain memory: an input of the graph, or an alias of one.
bool ScheduleBuilder::IsCallers(int32_t id) {
  const Item& root = item(RootOf(id));
  return root.made_by < 0 && !root.pinned && graph_.value(root.value).role != Role::kState;
}

// Returns `source`. If it is in the caller's memory, returns a copy in page-locked memory, since copy queues access the
// caller's memory slowly or not at all.
int32_t ScheduleBuilder::Stage(int32_t source) {
  if (!IsCallers(source)) return source;
  for (int32_t id : schedule_.versions[item(source).value]) {
    if (item(id).space == kHostSpace && SameLayout(item(id).layout, item(source).layout) && !IsCallers(id)) return id;
  }
  PlannedUnit unit = Between(Unit::Kind::kCopy, source, HostStepDevice(context_));
  unit.copy_name = "stage";
  unit.reason = "to page-locked memory, from where queues copy";
  return AddTransfer(std::move(unit), kHostSpace);
}

// Adds the copies that bring an item to another space, in its layout.
absl::StatusOr<int32_t> ScheduleBuilder::Cross(int32_t source, int32_t space, Device& reader) {
  const int32_t from = item(source).space;
  if (from == kHostSpace) return Copy(Stage(source), space, reader, "", -1);
  if (space == kHostSpace) return Copy(source, space, reader, "", -1);
  mge_link link = {};
  Device &sender = *schedule_.spaces[from].device, &receiver = *schedule_.spaces[space].device;
  const bool forbidden = !context_.settings->Get<kKvstoreP2p>() && sender.Is(MGE_DEVICE_GPU) && receiver.Is(MGE_DEVICE_GPU);
  bool direct = false;
  if (!forbidden) {
    MGE_ASSIGN_OR_RETURN(direct, DirectLink(sender, receiver, link));
  }
  if (direct) {
    const double bytes = static_cast<double>(ItemBytes(graph_, item(source)));
    const double us = link.bandwidth_gb_s > 0 ? link.latency_us + bytes / (link.bandwidth_gb_s * 1e3) : -1;
    const std::string name = CopyText(link.name, 64);
    std::string way = fmt::format(" directly{}{}", name.empty() ? "" : " over ", name);
    if (link.bandwidth_gb_s > 0) way += fmt::format(" ({:.1f} GB/s)", link.bandwidth_gb_s);
    return Copy(source, space, reader, way, us);
  }
  int32_t staged = -1;
  for (int32_t id : schedule_.versions[item(source).value]) {
    if (item(id).space == kHostSpace && SameLayout(item(id).layout, item(source).layout)) staged = id;
  }
  const char* const why = forbidden ? ", as kvstore.gpu_p2p forbids direct copies between GPUs"
                                    : ", as there is no direct way between the devices";
  if (staged < 0) staged = Copy(source, kHostSpace, reader, why, -1);
  return Copy(staged, space, reader, "", -1);
}

absl::StatusOr<int32_t> ScheduleBuilder::TransferTo(ValueId v, const mge_layout& layout, Device& reader) {
  if (IsConstantValue(graph_, v)) return -1;
  const int32_t space = SpaceOf(reader);
  const std::vector<int32_t>& versions = schedule_.versions[v];
  MGE_CHECK(!versions.empty());
  int32_t same_space = -1, same_layout = -1;
  for (int32_t id : versions) {
    bool here = item(id).space == space, fits = SameLayout(item(id).layout, layout);
    // The ids of opaque layouts are valid within one backend only.
    if (layout.kind == MGE_LAYOUT_OPAQUE) fits = fits && here && &item(id).device->backend() == &reader.backend();
    if (here && fits) return id;
    if (here && (same_space < 0 || IsPlain(item(id).layout))) same_space = id;
    if (fits && same_layout < 0) same_layout = id;
  }
  if (same_space >= 0) {
    const Item& source = item(same_space);
    if (IsPlain(source.layout) || source.device == &reader) return Reorder(same_space, layout, reader);
    if (IsPlain(layout)) return Reorder(same_space, layout, *source.device);
  }
  if (same_layout >= 0) return Cross(same_layout, space, reader);
  // The producer's device reorders the value to plain, a copy moves it, and the reader's device reorders it again.
  int32_t source = same_space >= 0 ? same_space : versions.front();
  if (!IsPlain(item(source).layout)) {
    MGE_ASSIGN_OR_RETURN(source, TransferTo(v, PlainLayout(), *item(source).device));
  }
  if (item(source).space != space) {
    MGE_ASSIGN_OR_RETURN(source, Cross(source, space, reader));
  }
  if (IsPlain(layout)) return source;
  return Reorder(source, layout, reader);
}

}  // namespace mge
