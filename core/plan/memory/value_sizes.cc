// SPDX-License-Identifier: Apache-2.0
#include "core/plan/memory/value_sizes.h"

#include <algorithm>
#include <string>

#include "core/base/errors.h"
#include "core/ops/op.h"
#include "fmt/format.h"

namespace mge {
namespace {

// The size, in bytes, up to which backends are asked for kernels whatever the limit. The error for the whole plan can then
// state its exact peak. Above it, a backend might allocate large tables for its kernel.
constexpr uint64_t kPlannedAnyway = 64 << 20;

bool HasStaticSize(const Value& v) { return v.kind == ValueKind::kTensor && v.type.IsStatic(); }

absl::StatusOr<uint64_t> StaticBytes(const Value& v, const std::string& place) {
  absl::StatusOr<int64_t> bytes = NumBytes(v.type.dtype, v.type.dims);
  if (bytes.ok()) return static_cast<uint64_t>(*bytes);
  return Fail(
      errors::kInvalidTensor, "a tensor is too large",
      {.what = fmt::format("'{}' is {}; its dimensions that are not 0, and the bytes of an element, must multiply to "
                           "less than 2^63",
                           v.name, v.type.ToString()),
       .where = place,
       .fix = "find the node that produces this shape, or use smaller inputs"});
}

// Returns the largest memory of the plan, or the first one with at least `enough` bytes. Ignores devices that cannot be
// opened.
MemoryCapacity LargestCapacity(const PlanContext& context, uint64_t enough) {
  std::vector<Device*> devices = context.devices;
  if (context.services->host && std::any_of(devices.begin(), devices.end(), [](Device* d) { return HasQueues(*d); })) {
    devices.insert(devices.begin() + 1, context.services->host);
  }
  MemoryCapacity largest;
  for (Device* device : devices) {
    absl::StatusOr<MemoryCapacity> capacity = CapacityOf(*device);
    if (capacity.ok() && capacity->bytes > largest.bytes) largest = *capacity;
    if (largest.bytes >= enough) break;
  }
  return largest;
}

}  // namespace

absl::StatusOr<ValueSizes> ValueSizes::Of(const Graph& graph, const PlanContext& context) {
  ValueSizes sizes(graph);
  sizes.bytes_.resize(static_cast<size_t>(graph.value_count()));
  for (ValueId v : graph.inputs()) {
    if (HasStaticSize(graph.value(v))) MGE_RETURN_IF_ERROR(StaticBytes(graph.value(v), "an input of the model").status());
  }
  MGE_ASSIGN_OR_RETURN(std::vector<NodeId> order, graph.TopologicalOrder());
  for (NodeId id : order) {
    const Node& node = graph.node(id);
    for (size_t i = 0; i < node.outputs.size(); ++i) {
      const ValueId v = node.outputs[i];
      if (v == kNone || !HasStaticSize(graph.value(v))) continue;
      MGE_ASSIGN_OR_RETURN(uint64_t bytes, StaticBytes(graph.value(v), NodePlace(node)));
      if (i > 0 || !node.def->KeepsBytes()) sizes.bytes_[v] = bytes;
    }
  }
  const uint64_t most = sizes.bytes_.empty() ? 0 : *std::max_element(sizes.bytes_.begin(), sizes.bytes_.end());
  if (most <= kPlannedAnyway) return sizes;
  sizes.capacity_ = LargestCapacity(context, most);
  if (!sizes.capacity_.device || sizes.capacity_.bytes >= most) return sizes;
  sizes.large_.resize(sizes.bytes_.size());
  for (NodeId id : order) {
    const Node& node = graph.node(id);
    for (ValueId v : node.outputs) {
      if (v != kNone) sizes.large_[v] = sizes.bytes_[v] > std::max(sizes.capacity_.bytes, kPlannedAnyway);
    }
    if (node.def->KeepsBytes() && node.outputs[0] != kNone) sizes.large_[node.outputs[0]] = sizes.large_[node.inputs[0]];
  }
  return sizes;
}

absl::Status ValueSizes::Check(const Node& node) const {
  for (ValueId v : node.outputs) {
    if (Fits(v) || bytes_[v] == 0) continue;
    const Value& value = graph_->value(v);
    std::vector<NamedBytes> all;
    for (ValueId other = 0; other < graph_->value_count(); ++other) {
      if (bytes_[other]) all.push_back({fmt::format("'{}'", graph_->value(other).name), bytes_[other]});
    }
    const uint64_t held = capacity_.device->LiveBytes();
    return DoesNotFit(
        capacity_,
        fmt::format("the planned peak is at least the {} bytes of '{}' : {}, which {} writes; {}; the largest are {}",
                    bytes_[v], value.name, value.type.ToString(), NodePlace(node), CapacityText(capacity_, held),
                    LargestOf(std::move(all))),
        capacity_.limited
            ? fmt::format("set a limit above {}={}, which holds this value alone", capacity_.device->budget().owner(),
                          held + bytes_[v])
            : fmt::format("use a device with more than {} bytes, or a smaller batch or model", held + bytes_[v]));
  }
  return absl::OkStatus();
}

}  // namespace mge
