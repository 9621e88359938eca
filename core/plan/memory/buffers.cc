// SPDX-License-Identifier: Apache-2.0
#include "core/plan/memory/buffers.h"

#include <algorithm>
#include <tuple>
#include <unordered_map>

#include "core/base/errors.h"
#include "core/ops/effects.h"
#include "core/ops/op.h"
#include "core/plan/lanes.h"
#include "core/plan/memory/memory_capacity.h"
#include "core/plan/memory/share.h"
#include "fmt/format.h"

namespace mge {
namespace {

// The number of units by which the life of a buffer is extended at both ends if several queues use it. Without it, a copy
// could not start early: it would wait until the memory of the units that it should overlap with is free. The same holds for
// kernels of several lanes.
constexpr int32_t kOverlapUnits = 16;

int64_t RoundUp(int64_t bytes, int64_t alignment) { return (bytes + alignment - 1) / alignment * alignment; }

class Assigner {
 public:
  Assigner(const Graph& graph, const Cover& cover, const Schedule& schedule, const PreparedKernels& kernels,
           const PlanContext& context, const StopControl* stop)
      : graph_(graph), cover_(cover), schedule_(schedule), kernels_(kernels), context_(context), stop_(stop) {
    out_.item_buffers.assign(schedule.items.size(), -1);
    out_.workspaces.assign(schedule.units.size(), -1);
    out_.in_place.resize(schedule.units.size());
    out_.packs.resize(schedule.units.size());
  }

  absl::StatusOr<MemoryPlan> Run() {
    AddArenas();
    AddInputs();
    AddStates();
    for (size_t u = 0; u < schedule_.units.size(); ++u) {
      MGE_RETURN_IF_ERROR(CheckStop(stop_));
      AssignOutputs(static_cast<int32_t>(u));
    }
    if (!schedule_.queues.empty()) MarkShared();
    AddDynamicConstants();
    AddOutputs();
    AddWorkspaces();
    AddRandom();
    MGE_RETURN_IF_ERROR(CheckSizes());
    for (size_t a = 0; a < schedule_.spaces.size(); ++a) MGE_RETURN_IF_ERROR(PlaceArena(a));
    return std::move(out_);
  }

 private:
  int32_t& BufferIndex(int32_t item) { return out_.item_buffers[item]; }
  Buffer& BufferOf(int32_t item) { return out_.buffers[out_.item_buffers[item]]; }
  const std::string& NameOf(int32_t item) const { return graph_.value(schedule_.items[item].value).name; }

  int32_t NewBuffer(Buffer b) {
    out_.buffers.push_back(std::move(b));
    return static_cast<int32_t>(out_.buffers.size()) - 1;
  }

  int32_t NewDynamic(ValueId v) {
    Buffer b;
    b.where = Buffer::Where::kDynamic;
    b.dynamic = out_.dynamic_count++;
    b.name = graph_.value(v).name;
    return NewBuffer(std::move(b));
  }

  void AddArenas() {
    for (const Space& space : schedule_.spaces) {
      Arena arena = {space.device, space.memory_class, out_.base_count++};
      arena.host_base = space.memory_class == MGE_MEMORY_PINNED ? out_.base_count++ : arena.base;
      arena.alignment = space.alignment;
      out_.arenas.push_back(arena);
    }
  }

  BoundValue Bound(ValueId v) const {
    const Value& value = graph_.value(v);
    return {value.name, value.kind, value.type, {}};
  }

  // Gives each input of the graph a base, or a dynamic value. An input in page-locked memory has two bases.
  void AddInputs() {
    for (size_t i = 0; i < graph_.inputs().size(); ++i) {
      const ValueId v = graph_.inputs()[i];
      if (IsConstantValue(graph_, v)) continue;
      const IoPlace place = schedule_.places.input(i);
      const int32_t item = schedule_.versions.at(v).front();
      if (HasSlot(graph_.value(v))) {
        Buffer b;
        b.where = Buffer::Where::kBase;
        b.space = schedule_.items[item].space;
        b.base = out_.base_count++;
        b.queue_base = place.pinned ? out_.base_count++ : b.base;
        b.name = graph_.value(v).name;
        BufferIndex(item) = NewBuffer(std::move(b));
        input_of_buffer_[BufferIndex(item)] = static_cast<int32_t>(i);
      } else {
        BufferIndex(item) = NewDynamic(v);
      }
      out_.inputs.push_back(Bound(v));
      out_.inputs.back().location = out_.LocationOf(BufferOf(item));
      out_.inputs.back().place = place;
      out_.inputs.back().queue_base = BufferOf(item).queue_base;
    }
  }

  // Gives each state a base.
  void AddStates() {
    for (size_t i = 0; i < schedule_.items.size(); ++i) {
      const Item& item = schedule_.items[i];
      if (item.made_by >= 0 || graph_.value(item.value).role != Role::kState) continue;
      Buffer b;
      b.where = Buffer::Where::kBase;
      b.space = item.space;
      b.base = out_.base_count++;
      b.bytes = ItemBytes(graph_, item);
      b.name = graph_.value(item.value).name;
      out_.states.push_back({item.value, b.base});
      BufferIndex(static_cast<int32_t>(i)) = NewBuffer(std::move(b));
    }
  }

  // Returns the pairs of input and output that the unit may compute in place.
  std::vector<mge_in_place> PairsOf(const PlannedUnit& unit) const {
    if (unit.kind == Unit::Kind::kKernel) return unit.candidate.in_place;
    if (unit.kind != Unit::Kind::kReference) return {};
    // The evaluator's pairs count all inputs of the node, but unit.inputs has only the present ones.
    std::vector<mge_in_place> pairs;
    const Node& node = graph_.node(unit.group->nodes[0]);
    for (const InPlacePair& pair : node.def->in_place) {
      if (pair.input >= static_cast<int>(node.inputs.size()) || node.inputs[pair.input] == kNone) continue;
      auto at = std::find(unit.group->inputs.begin(), unit.group->inputs.end(), node.inputs[pair.input]);
      pairs.push_back({static_cast<uint32_t>(pair.output), static_cast<uint32_t>(at - unit.group->inputs.begin())});
    }
    return pairs;
  }

  // Returns the buffers of the unit's inputs, sorted, each as often as the unit reads it.
  std::vector<int32_t> BuffersRead(const PlannedUnit& unit) const {
    std::vector<int32_t> buffers;
    for (int32_t item : unit.inputs) {
      if (item >= 0) buffers.push_back(out_.item_buffers[item]);
    }
    std::sort(buffers.begin(), buffers.end());
    return buffers;
  }

  // Returns the buffer of an input that output k may overwrite, or -1. `read` is BuffersRead().
  int32_t TryInPlace(int32_t u, size_t k, const std::vector<mge_in_place>& pairs, const std::vector<int32_t>& read,
                     const std::vector<int32_t>& taken) {
    const PlannedUnit& unit = schedule_.units[u];
    const int32_t output = unit.outputs[k];
    for (const mge_in_place& pair : pairs) {
      if (pair.output != k || pair.input >= unit.inputs.size() || unit.inputs[pair.input] < 0) continue;
      const int32_t candidate = BufferIndex(unit.inputs[pair.input]);
      const Buffer& b = out_.buffers[candidate];
      bool free_after = b.where == Buffer::Where::kArena && b.last == u;
      const auto [first, end] = std::equal_range(read.begin(), read.end(), candidate);
      bool read_once = end - first == 1;
      bool fits = b.bytes == ItemBytes(graph_, schedule_.items[output]);
      if (free_after && read_once && fits && std::find(taken.begin(), taken.end(), candidate) == taken.end()) {
        std::string& text = out_.in_place[u];
        text += fmt::format("{}{} over {}", text.empty() ? "" : ", ", NameOf(output), NameOf(unit.inputs[pair.input]));
        return candidate;
      }
    }
    return -1;
  }

  void AssignOutputs(int32_t u) {
    const PlannedUnit& unit = schedule_.units[u];
    // Lets the item use the buffer of another item.
    auto share = [&](int32_t item, int32_t buffer) {
      BufferIndex(item) = buffer;
      out_.buffers[buffer].last = std::max(out_.buffers[buffer].last, schedule_.items[item].last_use);
    };
    if (unit.kind == Unit::Kind::kAlias && unit.inputs[0] >= 0) return share(unit.outputs[0], BufferIndex(unit.inputs[0]));
    if (unit.group && unit.group->target >= 0) {  // an update: cover.h allows only targets that nothing reads later
      const int32_t target = unit.inputs[static_cast<size_t>(unit.group->target)];
      out_.in_place[u] = fmt::format("{} over {} (required)", NameOf(unit.outputs[0]), NameOf(target));
      return share(unit.outputs[0], BufferIndex(target));
    }
    const std::vector<mge_in_place> pairs =
        context_.settings->Get<kPlanInplace>() ? PairsOf(unit) : std::vector<mge_in_place>();
    const std::vector<int32_t> read = pairs.empty() ? std::vector<int32_t>() : BuffersRead(unit);
    std::vector<int32_t> taken;  // buffers overwritten by this unit
    for (size_t k = 0; k < unit.outputs.size(); ++k) {
      const Item& item = schedule_.items[unit.outputs[k]];
      if (!HasSlot(graph_.value(item.value))) {
        BufferIndex(unit.outputs[k]) = NewDynamic(item.value);
        continue;
      }
      if (int32_t over = TryInPlace(u, k, pairs, read, taken); over >= 0) {
        taken.push_back(over);
        share(unit.outputs[k], over);
        continue;
      }
      Buffer b;
      b.space = item.space;
      b.bytes = ItemBytes(graph_, item);
      b.first = u;
      b.last = std::max(u, item.last_use);
      b.name = graph_.value(item.value).name;
      BufferIndex(unit.outputs[k]) = NewBuffer(std::move(b));
    }
  }

  // Finds the buffers that units of several queues touch, and those whose memory units of several queues may get in turn.
  void MarkShared() {
    constexpr int32_t kNobody = -2;
    std::vector<int32_t> queue(out_.buffers.size(), kNobody);
    for (const PlannedUnit& unit : schedule_.units) {
      auto touch = [&](int32_t item) {
        if (item < 0) return;
        const int32_t b = BufferIndex(item);
        if (queue[b] != kNobody && queue[b] != unit.queue) out_.buffers[b].shared = true;
        queue[b] = unit.queue;
      };
      if (unit.kind == Unit::Kind::kAlias && unit.inputs[0] >= 0) continue;  // no step touches the buffer
      for (int32_t item : unit.inputs) touch(item);
      for (int32_t item : unit.outputs) touch(item);
    }
    for (size_t b = 0; b < out_.buffers.size(); ++b) {
      Buffer& buffer = out_.buffers[b];
      if (buffer.space == kHostSpace ? queue[b] >= 0 : HasLanes(buffer.space)) buffer.shared = true;
    }
  }

  // Returns whether units on several compute queues use the space.
  bool HasLanes(int32_t space) const {
    return std::any_of(schedule_.queues.begin(), schedule_.queues.end(), [&](const PlanQueue& q) {
      return q.device == schedule_.spaces[space].device && q.kind == MGE_QUEUE_COMPUTE && q.index > 0;
    });
  }

  // Returns whether kernels of several lanes use the space.
  bool HasOperationLanes(int32_t space) const {
    return space == kHostSpace && std::any_of(schedule_.units.begin(), schedule_.units.end(),
                                              [](const PlannedUnit& unit) { return unit.lane > 0; });
  }

  // Gives a dynamic value to each constant without plain bytes that a host step reads or that is an output.
  void AddDynamicConstants() {
    auto add = [&](ValueId v) {
      if (v == kNone || !IsConstantValue(graph_, v) || HasSlot(graph_.value(v))) return;
      if (out_.dynamic_constants.try_emplace(v, out_.dynamic_count).second) ++out_.dynamic_count;
    };
    for (const PlannedUnit& unit : schedule_.units) {
      if (unit.kind != Unit::Kind::kReference && unit.kind != Unit::Kind::kHost) continue;
      for (ValueId v : unit.group->inputs) add(v);
    }
    for (ValueId v : graph_.outputs()) add(v);
  }

  // Sets the location of each output. Steps of a device write directly to the caller's memory on that device. The calling
  // thread and copy queues write directly to page-locked memory, the calling thread also to plain host memory. All others
  // are copied to the caller's memory after the last unit.
  void AddOutputs() {
    in_order_ = schedule_.queues.empty() && !HasOperationLanes(kHostSpace);
    last_use_.assign(out_.buffers.size(), -1);
    for (size_t i = 0; i < schedule_.items.size(); ++i) {
      if (out_.item_buffers[i] < 0) continue;
      int32_t& last = last_use_[out_.item_buffers[i]];
      last = std::max(last, schedule_.items[i].last_use);
    }
    uint32_t continued = 0;
    for (size_t i = 0; i < graph_.outputs().size(); ++i) {
      const ValueId v = graph_.outputs()[i];
      BoundValue out = Bound(v);
      const IoPlace wanted = schedule_.places.output(i);
      const bool constant = IsConstantValue(graph_, v);
      if (cover_.IsDeferred(v)) {
        out.location.kind = Location::Kind::kContinuation;
        out.location.index = continued++;
      } else if (HasSlot(graph_.value(v))) {
        const uint32_t base = out_.base_count++;
        out.location.slot = {base, 0, 0};
        const int32_t on_device = schedule_.device_outputs.empty() ? -1 : schedule_.device_outputs[i];
        const bool pinned = wanted.pinned;
        if (on_device >= 0 || pinned) out.place = wanted;
        out.queue_base = pinned ? out_.base_count++ : base;
        const int32_t item = on_device >= 0 ? on_device : constant ? -1 : schedule_.HostItem(v);
        Buffer* b = item < 0 ? nullptr : &BufferOf(item);
        const bool direct = on_device >= 0 || (b && b->where == Buffer::Where::kArena && (!b->shared || pinned) &&
                                               !context_.settings->Get<kDebugCheckMemory>());
        if (direct) {
          MGE_CHECK(b->where == Buffer::Where::kArena);
          b->where = Buffer::Where::kOutput;
          b->base = base;
          b->queue_base = out.queue_base;
          if (!wanted.device) out.over_input = InputUnder(item);
        } else {
          out_.output_copies.push_back({static_cast<int32_t>(out_.outputs.size()), item, v});
        }
      } else {
        out.location.kind = Location::Kind::kDynamic;
        out.location.index = constant ? out_.dynamic_constants.at(v) : BufferOf(schedule_.HostItem(v)).dynamic;
      }
      if (wanted.on_device() && !out.place.device) out.move_to = wanted.device;
      out_.outputs.push_back(std::move(out));
    }
  }

  // Returns the number of the input of the graph that the unit of an output's item may overwrite with it: it computes in place,
  // and nothing else uses the output's buffer before or the input after. Returns -1 if there is none.
  int32_t InputUnder(int32_t output) {
    const int32_t u = schedule_.items[output].made_by;
    if (u < 0 || !in_order_ || BufferOf(output).first != u) return -1;
    const PlannedUnit& unit = schedule_.units[u];
    for (const mge_in_place& pair : PairsOf(unit)) {
      if (pair.output >= unit.outputs.size() || unit.outputs[pair.output] != output) continue;
      const int32_t input = pair.input < unit.inputs.size() ? unit.inputs[pair.input] : -1;
      if (input < 0) continue;
      const int32_t buffer = out_.item_buffers[input];
      const auto given = input_of_buffer_.find(buffer);
      const auto reads = [&](int32_t item) { return item >= 0 && out_.item_buffers[item] == buffer; };
      if (given != input_of_buffer_.end() && last_use_[buffer] <= u && std::ranges::count_if(unit.inputs, reads) == 1 &&
          ItemBytes(graph_, schedule_.items[input]) == ItemBytes(graph_, schedule_.items[output])) {
        return given->second;
      }
    }
    return -1;
  }

  // Adds a buffer that only unit `u` uses.
  int32_t NewScratch(size_t u, uint64_t bytes, std::string_view what) {
    Buffer b;
    b.space = schedule_.SpaceOf(*schedule_.units[u].device);
    b.bytes = static_cast<int64_t>(bytes);
    b.first = b.last = static_cast<int32_t>(u);
    b.workspace = true;
    b.shared = HasLanes(b.space);
    b.name = fmt::format("{} of {}", what, PlaceOf(graph_, schedule_, schedule_.units[u]));
    return NewBuffer(std::move(b));
  }

  // Gives each unit that draws random numbers a place for its key and counter.
  void AddRandom() {
    out_.random_slots.resize(schedule_.units.size());
    for (size_t u = 0; u < schedule_.units.size(); ++u) {
      const uint64_t blocks = kernels_.units[u].prepared.random_blocks;
      if (blocks == 0) continue;
      const PlannedUnit& unit = schedule_.units[u];
      auto at = std::find_if(out_.random.begin(), out_.random.end(),
                             [&](const RandomBase& r) { return r.device == unit.device && r.queue == unit.queue; });
      if (at == out_.random.end()) at = out_.random.insert(at, {unit.device, unit.queue, out_.base_count++});
      const uint64_t offset = at->steps.size() * kRandomStateBytes;
      at->steps.push_back({blocks, offset});
      out_.random_slots[u] = {at->base, 0, offset};
    }
  }

  // Returns whether all units of the unit's lane or queue use one workspace. They do if the number of workspaces is limited
  // and kernels of the device can run in parallel.
  bool SharesWorkspace(const PlannedUnit& unit) const {
    if (!unit.OnQueue()) return LaneLimit(context_).has_value();
    return QueueLimit(context_) && HasLanes(schedule_.SpaceOf(*unit.device));
  }

  // Returns the workspace of unit `u`.
  int32_t WorkspaceOf(size_t u, uint64_t bytes) {
    const PlannedUnit& unit = schedule_.units[u];
    if (!SharesWorkspace(unit)) return NewScratch(u, bytes, "workspace");
    auto [at, is_new] = lane_workspaces_.try_emplace({unit.device, unit.queue, unit.lane}, -1);
    if (is_new) {
      at->second = NewScratch(u, bytes, "workspace");
      out_.buffers[at->second].name = fmt::format("workspace of {} {}", unit.device->name(), QueueOrLane(schedule_, unit));
    }
    Buffer& b = out_.buffers[at->second];
    b.bytes = std::max(b.bytes, static_cast<int64_t>(bytes));
    b.last = static_cast<int32_t>(u);
    return at->second;
  }

  void AddWorkspaces() {
    for (size_t u = 0; u < schedule_.units.size(); ++u) {
      const PlannedUnit& unit = schedule_.units[u];
      const mge_prepared& prepared = kernels_.units[u].prepared;
      if (prepared.workspace_bytes) out_.workspaces[u] = WorkspaceOf(u, prepared.workspace_bytes);
      for (size_t k = 0; unit.group && unit.group->abi && k < unit.group->abi->inputs().size(); ++k) {
        if (!PacksState(graph_, *unit.group, prepared, k)) continue;
        out_.packs[u].push_back({k, NewScratch(u, prepared.prepack_bytes[k], "packed state")});
      }
    }
  }

  // Checks that sums of sizes fit into 64 bits. Later code adds them without checks.
  absl::Status CheckSizes() const {
    constexpr int64_t kMax = int64_t{1} << 60;
    int64_t left = kMax;
    for (const Buffer& b : out_.buffers) {
      if (b.bytes > left) {
        return Fail(
            errors::kOverBudget, "the model's tensors are larger than any memory",
            {.what = fmt::format("'{}' takes {} bytes; the limit for all tensors is {} bytes", b.name, b.bytes, kMax),
             .fix = "find the node that produces this shape, or use a smaller input"});
      }
      left -= b.bytes;
    }
    return absl::OkStatus();
  }

  // Adds an arena in the same device memory as arena `a`. Returns its index.
  int32_t AddPart(size_t a) {
    Arena part = out_.arenas[a];
    part.base = part.host_base = out_.base_count++;
    out_.arenas.push_back(part);
    return static_cast<int32_t>(out_.arenas.size()) - 1;
  }

  // Returns the device that allocates the arena of a space: its own. Devices without queues share host memory, so if its own
  // device cannot allocate `bytes` at once, another one of them does.
  Device& AllocatorOf(const Space& space, int64_t bytes) const {
    if (HasQueues(*space.device) || bytes <= LargestPiece(*space.device)) return *space.device;
    auto able = [&](Device* d) { return !HasQueues(*d) && bytes <= LargestPiece(*d) && d->Open().ok(); };
    auto at = std::find_if(context_.devices.begin(), context_.devices.end(), able);
    return at == context_.devices.end() ? *space.device : **at;
  }

  // Places the buffers of space `a`.
  absl::Status PlaceArena(size_t a) {
    const Space& space = schedule_.spaces[a];
    const int32_t end = static_cast<int32_t>(schedule_.units.size());
    const auto alignment = static_cast<int64_t>(out_.arenas[a].alignment);
    const int64_t zone = context_.settings->Get<kDebugCheckMemory>() ? std::max(kRedZoneBytes, alignment) : 0;
    const bool lanes = HasOperationLanes(static_cast<int32_t>(a));
    std::vector<Interval> intervals;
    std::vector<int32_t> placed;
    for (size_t i = 0; i < out_.buffers.size(); ++i) {
      const Buffer& b = out_.buffers[i];
      if (b.where != Buffer::Where::kArena || b.space != static_cast<int32_t>(a)) continue;
      const int32_t slack = b.shared || lanes ? kOverlapUnits : 0;
      const int32_t last = std::min(std::max(b.last, b.first), end);
      const int64_t zones = b.bytes ? 2 * zone : 0;
      const PlannedUnit& unit = schedule_.units[b.first];
      intervals.push_back({RoundUp(b.bytes, alignment) + zones, std::max(b.first - slack, 0), std::min(last + slack, end),
                           HasLanes(b.space) ? unit.queue : unit.lane});
      placed.push_back(static_cast<int32_t>(i));
    }
    int64_t most = INT64_MAX;
    if (space.memory_class == MGE_MEMORY_DEVICE && !intervals.empty()) {
      auto smaller = [](const Interval& x, const Interval& y) { return x.bytes < y.bytes; };
      const auto largest = std::max_element(intervals.begin(), intervals.end(), smaller);
      Device& device = AllocatorOf(space, largest->bytes);
      most = LargestPiece(device);
      const Buffer& b = out_.buffers[placed[static_cast<size_t>(largest - intervals.begin())]];
      if (largest->bytes > most) return TooLargeAtOnce(device, b.name, largest->bytes);
      out_.arenas[a].device = &device;
    }
    const MatchRange range = {context_.settings->Get<kPlanMatchRange>(), context_.settings->IsSet<kPlanMatchRange>()};
    const Placement placement = PlaceSmallest(intervals, range, most, stop_);
    MGE_RETURN_IF_ERROR(CheckStop(stop_));
    std::vector<int32_t> arenas = {static_cast<int32_t>(a)};  // index of the arena of each part
    while (arenas.size() < placement.part_bytes.size()) arenas.push_back(AddPart(a));
    for (size_t i = 0; i < placed.size(); ++i) {
      Buffer& b = out_.buffers[placed[i]];
      b.arena = arenas[placement.parts[i]];
      b.offset = placement.offsets[i] + (b.bytes ? zone : 0);
      out_.placed.push_back({b.name, b.bytes, intervals[i].first, intervals[i].last, b.offset, b.workspace, b.arena});
      out_.placed_from.push_back(placed[i]);
    }
    for (size_t part = 0; part < arenas.size(); ++part) out_.arenas[arenas[part]].bytes = placement.part_bytes[part];
    for (int32_t part : arenas) out_.arenas[part].match_range = placement.match_range;
    out_.arenas[a].lower_bound_bytes = placement.lower_bound;
    return absl::OkStatus();
  }

  const Graph& graph_;
  const Cover& cover_;
  const Schedule& schedule_;
  const PreparedKernels& kernels_;
  const PlanContext& context_;
  const StopControl* stop_;
  std::map<std::tuple<Device*, int32_t, int32_t>, int32_t>
      lane_workspaces_;                                   // by queue and lane: the workspace of its units
  std::unordered_map<int32_t, int32_t> input_of_buffer_;  // inputs of the graph
  bool in_order_ = false;                                 // true: the units run one after the other
  std::vector<int32_t> last_use_;                         // by buffer: the last unit that reads one of its items, or kEnd
  MemoryPlan out_;
};

}  // namespace

mge_slot MemoryPlan::SlotOf(const Buffer& b, bool on_queue) const {
  MGE_CHECK(b.where != Buffer::Where::kDynamic);
  if (b.where != Buffer::Where::kArena) return {on_queue && b.queue_base ? b.queue_base : b.base, 0, 0};
  const Arena& arena = arenas[b.arena];
  return {on_queue ? arena.base : arena.host_base, 0, static_cast<uint64_t>(b.offset)};
}

Location MemoryPlan::LocationOf(const Buffer& b) const {
  Location location;
  if (b.where == Buffer::Where::kDynamic) {
    location.kind = Location::Kind::kDynamic;
    location.index = b.dynamic;
  } else {
    location.slot = SlotOf(b, false);
  }
  return location;
}

bool PacksState(const Graph& graph, const Group& group, const mge_prepared& prepared, size_t k) {
  return prepared.prepack_bytes && prepared.prepack_bytes[k] && StateOf(graph, group.inputs[k]) != kNone;
}

bool HasSlot(const Value& value) {
  return value.kind == ValueKind::kTensor && value.type.IsStatic() && value.type.dtype != DType::kString;
}

absl::StatusOr<MemoryPlan> AssignBuffers(const Graph& graph, const Cover& cover, const Schedule& schedule,
                                         const PreparedKernels& kernels, const PlanContext& context,
                                         const StopControl* stop) {
  return Assigner(graph, cover, schedule, kernels, context, stop).Run();
}

}  // namespace mge
