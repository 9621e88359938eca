// SPDX-License-Identifier: Apache-2.0
#include "core/plan/transfers.h"

#include "core/base/errors.h"
#include "core/plan/layout/reorder.h"
#include "core/plugin/abi_call.h"
#include "fmt/format.h"

namespace mge {
namespace {

// Returns an added unit, which reads item `source` and writes the same value in another layout or space.
PlannedUnit Between(PlanBuilder& p, Unit::Kind kind, int32_t source, Device& device) {
  PlannedUnit planned;
  planned.unit.kind = kind;
  planned.device = &device;
  planned.from = planned.to = p.items[source].layout;
  planned.inputs = {source};
  return planned;
}

int32_t Add(PlanBuilder& p, PlannedUnit planned, int32_t space) {
  int32_t unit = static_cast<int32_t>(p.planned_units.size()), source = planned.inputs[0];
  p.items[source].uses.push_back(unit);
  int32_t made = NewItem(p, p.items[source].value, planned.to, space, planned.device, unit);
  planned.outputs = {made};
  p.planned_units.push_back(std::move(planned));
  return made;
}

absl::StatusOr<int32_t> Reorder(PlanBuilder& p, int32_t source, const mge_layout& layout, Device& device) {
  const Item& item = p.items[source];
  const TensorType& type = p.value(item.value).type;
  PlannedUnit planned = Between(p, Unit::Kind::kReorder, source, device);
  planned.to = layout;
  if (HasQueues(device)) planned.queue = QueueOf(p, device, MGE_QUEUE_COMPUTE);
  MGE_ASSIGN_OR_RETURN(planned.candidate, ChooseReorder(*p.context, device, type, planned.from, planned.to));
  planned.unit.reason =
      fmt::format("'{}' is {} and wanted {}", p.value(item.value).name, LayoutText(planned.from), LayoutText(planned.to));
  return Add(p, std::move(planned), item.space);
}

std::string SpaceName(const PlanBuilder& p, int32_t space) {
  return space == kHostSpace ? "the host" : p.spaces[space].device->name();
}

// Adds one copy between two memories and returns the new item.
int32_t Copy(PlanBuilder& p, int32_t source, int32_t space, const Device& reader, std::string_view way, double cost_us) {
  int32_t from = p.items[source].space;
  bool peer = from != kHostSpace && space != kHostSpace;
  bool out = space == kHostSpace;
  Device& device = *p.spaces[out ? from : space].device;
  PlannedUnit planned = Between(p, Unit::Kind::kCopy, source, device);
  planned.queue = QueueOf(p, device, out ? MGE_QUEUE_COPY_OUT : MGE_QUEUE_COPY_IN);
  planned.peer = peer;
  planned.unit.kernel = peer ? "peer copy" : out ? "copy to host" : "copy from host";
  planned.unit.cost_us = cost_us;
  planned.unit.reason = fmt::format("{} reads it; {} bytes from {} to {}{}", reader.name(), p.ItemBytes(p.items[source]),
                                    SpaceName(p, from), SpaceName(p, space), way);
  return Add(p, std::move(planned), space);
}

// Returns true and fills `link` if the devices have a direct link. Fails with kKernelFailed if the link has unknown flags.
absl::StatusOr<bool> DirectLink(Device& from, Device& to, mge_link& link) {
  const mge_device_api& api = *from.backend().plugin().device;
  const mge_queue_api& queues = *to.queue_api();
  if (&from.backend() != &to.backend() || !api.link || !queues.copy_peer) return false;
  link.struct_size = sizeof(link);
  mge_error error;
  mge_code code = CallBackend(error, [&](mge_error* e) { return api.link(from.handle(), to.handle(), &link, e); });
  if (code != MGE_OK) return false;
  if (uint32_t unknown = link.flags & ~MGE_LINK_KNOWN_BITS) {
    return Fail(errors::kKernelFailed,
                fmt::format("backend {} sets flags of a link that this host does not know", from.backend().name()),
                {.what = fmt::format("{:#x}", unknown),
                 .where = fmt::format("from device {} to {}", from.name(), to.name()),
                 .fix = "use the version of the backend that belongs to this MGE, or only one of its devices"});
  }
  return (link.flags & MGE_LINK_PEER) != 0;
}

// Returns true if the item is in the caller's memory: an input of the graph, or an alias of one.
bool IsCallers(const PlanBuilder& p, int32_t item) {
  for (int32_t unit; (unit = p.items[item].made_by) >= 0; item = p.planned_units[unit].inputs[0]) {
    if (p.planned_units[unit].unit.kind != Unit::Kind::kAlias || p.planned_units[unit].inputs[0] < 0) return false;
  }
  return true;
}

// Returns `source`. If it is in the caller's memory, returns a copy in page-locked memory, since copy queues access the
// caller's memory slowly or not at all.
int32_t Stage(PlanBuilder& p, int32_t source, Device& device) {
  if (!IsCallers(p, source)) return source;
  for (int32_t id : p.versions[p.items[source].value]) {
    const Item& item = p.items[id];
    if (item.space == kHostSpace && SameLayout(item.layout, p.items[source].layout) && !IsCallers(p, id)) return id;
  }
  PlannedUnit planned = Between(p, Unit::Kind::kCopy, source, device);
  planned.unit.kernel = "stage";
  planned.unit.reason = "to page-locked memory, from where queues copy";
  return Add(p, std::move(planned), kHostSpace);
}

absl::StatusOr<int32_t> Cross(PlanBuilder& p, int32_t source, int32_t space, Device& reader) {
  int32_t from = p.items[source].space;
  if (from == kHostSpace) return Copy(p, Stage(p, source, HostStepDevice(*p.context)), space, reader, "", -1);
  if (space == kHostSpace) return Copy(p, source, space, reader, "", -1);
  mge_link link = {};
  MGE_ASSIGN_OR_RETURN(bool direct, DirectLink(*p.spaces[from].device, *p.spaces[space].device, link));
  if (direct) {
    double bytes = static_cast<double>(p.ItemBytes(p.items[source]));
    double us = link.bandwidth_gb_s > 0 ? link.latency_us + bytes / (link.bandwidth_gb_s * 1e3) : -1;
    std::string name = CopyText(link.name, 64);
    std::string way = fmt::format(" directly{}{}", name.empty() ? "" : " over ", name);
    if (link.bandwidth_gb_s > 0) way += fmt::format(" ({:.1f} GB/s)", link.bandwidth_gb_s);
    return Copy(p, source, space, reader, way, us);
  }
  int32_t staged = -1;
  for (int32_t id : p.versions[p.items[source].value]) {
    if (p.items[id].space == kHostSpace && SameLayout(p.items[id].layout, p.items[source].layout)) staged = id;
  }
  if (staged < 0) staged = Copy(p, source, kHostSpace, reader, ", as there is no direct way between the devices", -1);
  return Copy(p, staged, space, reader, "", -1);
}

}  // namespace

int32_t NewItem(PlanBuilder& p, ValueId v, const mge_layout& layout, int32_t space, Device* device, int32_t unit) {
  p.items.push_back({.value = v, .layout = layout, .space = space, .device = device, .made_by = unit});
  int32_t id = static_cast<int32_t>(p.items.size()) - 1;
  p.versions[v].push_back(id);
  return id;
}

int32_t QueueOf(PlanBuilder& p, Device& device, int32_t kind) {
  std::vector<PlanQueue>& queues = p.plan->queues;
  for (size_t q = 0; q < queues.size(); ++q) {
    if (queues[q].device == &device && queues[q].kind == kind) return static_cast<int32_t>(q);
  }
  queues.push_back({&device, kind, 0});
  return static_cast<int32_t>(queues.size()) - 1;
}

absl::StatusOr<int32_t> TransferTo(PlanBuilder& p, ValueId v, const mge_layout& layout, Device& reader) {
  if (p.IsConstant(v)) return -1;
  int32_t space = p.SpaceOf(reader);
  const std::vector<int32_t>& versions = p.versions[v];
  MGE_CHECK(!versions.empty());
  int32_t same_space = -1, same_layout = -1;
  for (int32_t id : versions) {
    const Item& item = p.items[id];
    bool here = item.space == space, fits = SameLayout(item.layout, layout);
    // The ids of opaque layouts are valid within one backend only.
    if (layout.kind == MGE_LAYOUT_OPAQUE) fits = fits && here && &item.device->backend() == &reader.backend();
    if (here && fits) return id;
    if (here && (same_space < 0 || IsPlain(item.layout))) same_space = id;
    if (fits && same_layout < 0) same_layout = id;
  }
  if (same_space >= 0) {
    const Item& item = p.items[same_space];
    if (IsPlain(item.layout) || item.device == &reader) return Reorder(p, same_space, layout, reader);
    if (IsPlain(layout)) return Reorder(p, same_space, layout, *item.device);
  }
  if (same_layout >= 0) return Cross(p, same_layout, space, reader);
  // The producer's device reorders the value to plain, a copy moves it, and the reader's device reorders it again.
  int32_t source = same_space >= 0 ? same_space : versions.front();
  if (!IsPlain(p.items[source].layout)) {
    MGE_ASSIGN_OR_RETURN(source, TransferTo(p, v, PlainLayout(), *p.items[source].device));
  }
  if (p.items[source].space != space) {
    MGE_ASSIGN_OR_RETURN(source, Cross(p, source, space, reader));
  }
  if (IsPlain(layout)) return source;
  return Reorder(p, source, layout, reader);
}

}  // namespace mge
