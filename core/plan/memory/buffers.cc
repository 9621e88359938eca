// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "core/base/errors.h"
#include "core/ops/op.h"
#include "core/plan/memory/memory_capacity.h"
#include "core/plan/memory/place.h"
#include "core/plan/stages.h"
#include "fmt/format.h"

namespace mge {
namespace {

int64_t RoundUp(int64_t bytes) { return (bytes + kBufferAlignment - 1) / kBufferAlignment * kBufferAlignment; }

int32_t NewBuffer(PlanBuilder& p, Buffer b) {
  p.buffers.push_back(std::move(b));
  return static_cast<int32_t>(p.buffers.size()) - 1;
}

int32_t NewDynamic(PlanBuilder& p, ValueId v) {
  Buffer b;
  b.where = Buffer::Where::kDynamic;
  b.dynamic = p.plan->dynamic_count++;
  b.name = p.value(v).name;
  return NewBuffer(p, std::move(b));
}

// Returns the buffer of an input that output k may overwrite, or -1.
int32_t TryInPlace(PlanBuilder& p, int32_t u, size_t k, const std::vector<int32_t>& taken) {
  PlannedUnit& d = p.planned_units[u];
  std::vector<mge_in_place> pairs = d.in_place;
  if (d.unit.kind == Unit::Kind::kReference) {
    // The evaluator's pairs count all inputs of the node, but d.inputs has only the present ones.
    const Node& node = p.graph.node(d.group->nodes[0]);
    for (const InPlacePair& pair : node.def->in_place) {
      if (pair.output == static_cast<int>(k) && pair.input < static_cast<int>(node.inputs.size()) &&
          node.inputs[pair.input] != kNone) {
        auto at = std::find(d.group->inputs.begin(), d.group->inputs.end(), node.inputs[pair.input]);
        pairs.push_back({static_cast<uint32_t>(k), static_cast<uint32_t>(at - d.group->inputs.begin())});
      }
    }
  }
  for (const mge_in_place& pair : pairs) {
    if (pair.output != k || pair.input >= d.inputs.size() || d.inputs[pair.input] < 0) continue;
    int32_t candidate = p.items[d.inputs[pair.input]].buffer;
    const Buffer& b = p.buffers[candidate];
    bool free_after = b.where == Buffer::Where::kArena && b.last == u;
    bool read_once = std::count_if(d.inputs.begin(), d.inputs.end(),
                                   [&](int32_t i) { return i >= 0 && p.items[i].buffer == candidate; }) == 1;
    bool fits = b.bytes == p.ItemBytes(p.items[d.outputs[k]]);
    if (free_after && read_once && fits && std::find(taken.begin(), taken.end(), candidate) == taken.end()) {
      d.unit.in_place = fmt::format("{} over {}", p.value(p.items[d.outputs[k]].value).name,
                                    p.value(p.items[d.inputs[pair.input]].value).name);
      return candidate;
    }
  }
  return -1;
}

void AssignOutputs(PlanBuilder& p, int32_t u) {
  PlannedUnit& d = p.planned_units[u];
  if (d.unit.kind == Unit::Kind::kAlias && d.inputs[0] >= 0) {
    Item& out = p.items[d.outputs[0]];
    out.buffer = p.items[d.inputs[0]].buffer;
    p.buffers[out.buffer].last = std::max(p.buffers[out.buffer].last, out.last_use);
    return;
  }
  std::vector<int32_t> taken;  // buffers overwritten by this unit
  for (size_t k = 0; k < d.outputs.size(); ++k) {
    Item& out = p.items[d.outputs[k]];
    if (!p.HasSlot(out.value)) {
      out.buffer = NewDynamic(p, out.value);
      continue;
    }
    out.buffer = p.context->in_place ? TryInPlace(p, u, k, taken) : -1;
    if (out.buffer >= 0) {
      taken.push_back(out.buffer);
      p.buffers[out.buffer].last = std::max(p.buffers[out.buffer].last, out.last_use);
      continue;
    }
    Buffer b;
    b.space = out.space;
    b.bytes = p.ItemBytes(out);
    b.first = u;
    b.last = std::max(u, out.last_use);
    b.name = p.value(out.value).name;
    out.buffer = NewBuffer(p, std::move(b));
  }
}

// Sets the location of each output. The calling thread writes its outputs directly to the caller's memory. All others are
// copied there after the last unit.
void GiveOutputsTheirMemory(PlanBuilder& p) {
  for (ValueId v : p.graph.outputs()) {
    BoundValue out;
    out.name = p.value(v).name;
    out.kind = p.value(v).kind;
    out.type = p.value(v).type;
    bool constant = p.IsConstant(v);
    if (constant ? p.HasSlot(v) : !p.IsDeferred(v) && p.HasSlot(v)) {
      uint32_t base = p.plan->base_count++;
      out.location.slot = {base, 0, 0};
      int32_t item = constant ? -1 : p.HostItem(v);
      Buffer* b = constant ? nullptr : &p.buffers[p.items[item].buffer];
      if (b && b->where == Buffer::Where::kArena && !b->shared && !p.plan->red_zones) {
        b->where = Buffer::Where::kOutput;
        b->base = base;
      } else {
        p.output_copies.push_back({static_cast<int32_t>(p.plan->outputs.size()), item, v});
      }
    } else if (constant) {
      out.location = p.DynamicConstant(v);
    } else if (!p.IsDeferred(v)) {
      out.location.kind = Location::Kind::kDynamic;
      out.location.index = p.buffers[p.items[p.HostItem(v)].buffer].dynamic;
    } else {
      out.location.kind = Location::Kind::kContinuation;
    }
    p.plan->outputs.push_back(std::move(out));
  }
}

void MakeArenas(PlanBuilder& p) {
  for (const Space& space : p.spaces) {
    Arena arena = {space.device, space.memory_class, p.plan->base_count++};
    arena.host_base = space.memory_class == MGE_MEMORY_PINNED ? p.plan->base_count++ : arena.base;
    p.plan->arenas.push_back(arena);
  }
}

// Finds the buffers that units of several queues touch.
void MarkShared(PlanBuilder& p) {
  constexpr int32_t kNobody = -2;
  std::vector<int32_t> queue(p.buffers.size(), kNobody);
  for (const PlannedUnit& d : p.planned_units) {
    auto touch = [&](int32_t item) {
      if (item < 0) return;
      int32_t b = p.items[item].buffer;
      if (queue[b] != kNobody && queue[b] != d.queue) p.buffers[b].shared = true;
      queue[b] = d.queue;
    };
    if (d.unit.kind == Unit::Kind::kAlias && d.inputs[0] >= 0) continue;  // no step touches the buffer
    for (int32_t item : d.inputs) touch(item);
    for (int32_t item : d.outputs) touch(item);
  }
  for (size_t b = 0; b < p.buffers.size(); ++b) {
    if (p.buffers[b].space == kHostSpace && queue[b] >= 0) p.buffers[b].shared = true;
  }
}

// The number of units by which the life of a buffer is extended at both ends if several queues use it. Without it, a copy
// could not start early: it would wait until the memory of the units that it should overlap with is free.
constexpr int32_t kOverlapUnits = 16;

// Checks that sums of sizes fit into 64 bits. Later code adds them without checks.
absl::Status CheckSizes(const PlanBuilder& p) {
  constexpr int64_t kMost = int64_t{1} << 60;
  int64_t left = kMost;
  for (const Buffer& b : p.buffers) {
    if (b.bytes > left) {
      return Fail(errors::kOverBudget, "the model's tensors are larger than any memory",
                  {.what = fmt::format("'{}' takes {} bytes; the limit for all tensors is {} bytes", b.name, b.bytes, kMost),
                   .fix = "find the node that produces this shape, or use a smaller input"});
    }
    left -= b.bytes;
  }
  return absl::OkStatus();
}

// Adds an arena in the same device memory as arena `a`. Returns its index.
int32_t AddArena(PlanBuilder& p, size_t a) {
  Arena part = p.plan->arenas[a];
  part.base = part.host_base = p.plan->base_count++;
  p.plan->arenas.push_back(part);
  return static_cast<int32_t>(p.plan->arenas.size()) - 1;
}

absl::Status PlaceArenas(PlanBuilder& p) {
  int32_t end = static_cast<int32_t>(p.planned_units.size());
  const int64_t guard = p.plan->red_zones ? kRedZoneBytes : 0;
  for (size_t a = 0; a < p.spaces.size(); ++a) {
    const Space& space = p.spaces[a];
    const int64_t most = space.memory_class == MGE_MEMORY_DEVICE ? LargestPiece(*space.device) : INT64_MAX;
    std::vector<Interval> intervals;
    std::vector<int32_t> placed;
    for (size_t i = 0; i < p.buffers.size(); ++i) {
      const Buffer& b = p.buffers[i];
      if (b.where != Buffer::Where::kArena || b.space != static_cast<int32_t>(a)) continue;
      int32_t slack = b.shared ? kOverlapUnits : 0;
      int32_t last = std::min(std::max(b.last, b.first), end);
      int64_t guards = b.bytes ? 2 * guard : 0;
      intervals.push_back({RoundUp(b.bytes) + guards, std::max(b.first - slack, 0), std::min(last + slack, end)});
      placed.push_back(static_cast<int32_t>(i));
      if (intervals.back().bytes > most) return TooLargeAtOnce(*space.device, b.name, intervals.back().bytes);
    }
    Placement placement = PlaceIntervals(intervals, most);
    std::vector<int32_t> arenas = {static_cast<int32_t>(a)};  // index of the arena of each part
    while (arenas.size() < placement.part_bytes.size()) arenas.push_back(AddArena(p, a));
    for (size_t i = 0; i < placed.size(); ++i) {
      Buffer& b = p.buffers[placed[i]];
      b.arena = arenas[placement.parts[i]];
      b.offset = placement.offsets[i] + (b.bytes ? guard : 0);
      p.plan->buffers.push_back({b.name, b.bytes, intervals[i].first, intervals[i].last, b.offset, b.workspace, b.arena});
    }
    for (size_t part = 0; part < arenas.size(); ++part) p.plan->arenas[arenas[part]].bytes = placement.part_bytes[part];
    p.plan->arenas[a].lower_bound_bytes = placement.lower_bound;
    p.plan->arena_bytes += placement.total;
    p.plan->lower_bound_bytes += placement.lower_bound;
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status AssignBuffers(PlanBuilder& p) {
  p.plan->red_zones = p.context->red_zones;
  MakeArenas(p);
  for (ValueId v : p.graph.inputs()) {
    if (p.IsConstant(v)) continue;
    Item& item = p.items[p.versions[v].front()];
    if (!p.HasSlot(v)) {
      item.buffer = NewDynamic(p, v);
      continue;
    }
    Buffer b;
    b.where = Buffer::Where::kBase;
    b.base = p.plan->base_count++;
    b.name = p.value(v).name;
    item.buffer = NewBuffer(p, std::move(b));
  }
  for (size_t u = 0; u < p.planned_units.size(); ++u) AssignOutputs(p, static_cast<int32_t>(u));
  if (!p.plan->queues.empty()) MarkShared(p);
  GiveOutputsTheirMemory(p);
  for (size_t u = 0; u < p.planned_units.size(); ++u) {
    PlannedUnit& d = p.planned_units[u];
    if (d.prepared.workspace_bytes == 0) continue;
    Buffer b;
    b.space = p.SpaceOf(*d.device);
    b.bytes = static_cast<int64_t>(d.prepared.workspace_bytes);
    b.first = b.last = static_cast<int32_t>(u);
    b.workspace = true;
    b.name = "workspace of " + p.Place(d);
    d.workspace_buffer = NewBuffer(p, std::move(b));
  }
  MGE_RETURN_IF_ERROR(CheckSizes(p));
  return PlaceArenas(p);
}

}  // namespace mge
