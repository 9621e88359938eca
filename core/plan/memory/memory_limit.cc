// SPDX-License-Identifier: Apache-2.0
#include "core/plan/memory/memory_limit.h"

#include <algorithm>
#include <deque>
#include <set>
#include <string>
#include <utility>

#include "core/base/errors.h"
#include "core/plan/memory/constants.h"
#include "core/plan/memory/memory_capacity.h"
#include "core/plan/memory/memory_errors.h"
#include "core/plugin/sync_queue.h"
#include "fmt/format.h"

namespace mge {
namespace {

// The memory that a plan requests from one pool.
struct PoolNeed {
  Pool* pool;
  std::vector<PoolRequest> constants = {}, all = {};
  uint64_t small = 0;  // bytes of constants that share blocks
};

// A MemoryNeed with the data from which it is computed.
struct Need : MemoryNeed {
  uint64_t staging = 0;  // bytes for uploads, which the pool keeps and arenas may reuse
  std::vector<PoolNeed> pools = {};
  std::vector<NamedBytes> pieces = {};
};

class Needs {
 public:
  Needs(const Graph& graph, const Cover& cover, const Schedule& schedule, const PreparedKernels& kernels,
        const MemoryPlan& memory, const PlanContext& context)
      : graph_(graph), cover_(cover), schedule_(schedule), kernels_(kernels), memory_(memory), context_(context) {}

  absl::Status Collect() {
    for (const Arena& arena : memory_.arenas) MGE_RETURN_IF_ERROR(AddArena(arena));
    for (const PlacedBuffer& b : memory_.placed) AddBuffer(b);
    for (size_t u = 0; u < schedule_.units.size(); ++u) {
      if (schedule_.units[u].kind == Unit::Kind::kKernel) MGE_RETURN_IF_ERROR(AddConstants(u));
    }
    for (size_t i = 0; i < graph_.outputs().size(); ++i) {
      const ValueId v = graph_.outputs()[i];
      if (!cover_.IsDeferred(v) && HasSlot(graph_.value(v))) AddOutput(v, memory_.outputs[i].place);
    }
    for (Need& need : needs_) AddUp(need);
    return absl::OkStatus();
  }

  std::deque<Need> Take() { return std::move(needs_); }

 private:
  absl::Status AddArena(const Arena& arena) {
    if (arena.bytes == 0) return absl::OkStatus();
    Need& need = OfClass(*arena.device, arena.memory_class);
    MGE_ASSIGN_OR_RETURN(Pool * pool, arena.device->PoolOf(arena.memory_class));
    PoolOf(need, pool).all.push_back({static_cast<uint64_t>(arena.bytes), arena.alignment});
    return absl::OkStatus();
  }
  void AddBuffer(const PlacedBuffer& b) {
    const Arena& arena = memory_.arenas[static_cast<size_t>(b.arena)];
    if (arena.bytes == 0) return;
    OfClass(*arena.device, arena.memory_class)
        .pieces.push_back({fmt::format("'{}', steps {}..{}", b.name, b.first, b.last), static_cast<uint64_t>(b.bytes)});
  }
  // Adds the constants of unit `u`, which has a kernel.
  absl::Status AddConstants(size_t u) {
    const PlannedUnit& unit = schedule_.units[u];
    const mge_prepared& prepared = kernels_.units[u].prepared;
    Device& device = *unit.device;
    for (size_t k = 0; k < unit.group->inputs.size(); ++k) {
      const ValueId v = unit.group->inputs[k];
      if (!IsConstantValue(graph_, v)) continue;
      const uint64_t packed = prepared.prepack_bytes ? prepared.prepack_bytes[k] : 0;
      const ConstantKey key = packed ? PackedKey(graph_, unit, prepared, k) : PlainKey(device, v);
      const bool named = packed && !key.form.empty();
      if (named && !forms_.insert(key).second) continue;
      if (HasQueues(device)) {
        if (packed == 0 && !uploaded_.emplace(&device, v).second) continue;
        MGE_RETURN_IF_ERROR(AddUpload(device, v, key, packed != 0, named));
      } else if (packed && !(named && IsPacked(key, v))) {
        Need& need = OfHostMemory(device);
        need.constants += packed + device.BufferAlignment() - kBufferAlignment;
        AddPiece(need, v, packed);
      } else if (const Tensor& plain = graph_.value(v).constant; !packed && plain.lazy()) {
        const ConstantKey kept = KeyOf(nullptr, plain, plain.bytes());
        if (IsPacked(kept, v) || !forms_.insert(kept).second) continue;
        Need& need = OfHostMemory(HostStepDevice(context_));
        need.constants += static_cast<uint64_t>(plain.bytes());
        AddPiece(need, v, static_cast<uint64_t>(plain.bytes()));
      }
    }
    return absl::OkStatus();
  }
  void AddOutput(ValueId v, const IoPlace& place) {
    const TensorType& type = graph_.value(v).type;
    Need& need = place.on_device() ? Of(*place.device) : OfHostMemory(*context_.devices.front());
    const auto bytes = static_cast<uint64_t>(Elements(type.dims) * ElementBytes(type.dtype));
    need.outputs += bytes;
    need.pieces.push_back({fmt::format("output '{}'", graph_.value(v).name), bytes});
  }
  // Computes the bytes that the pools take for the requests of one budget.
  static void AddUp(Need& need) {
    for (PoolNeed& of : need.pools) {
      const auto most = static_cast<uint64_t>(LargestPiece(*need.device));
      for (uint64_t left = of.small; left > 0; left -= std::min(left, most)) {
        of.constants.push_back({std::min(left, most), DeviceConstants::AlignmentOn(*need.device)});
      }
      of.all.insert(of.all.begin(), of.constants.begin(), of.constants.end());
      const uint64_t constants = of.pool->Footprint(of.constants);
      need.constants += constants;
      need.arena += of.pool->Footprint(of.all) - constants;
    }
    need.largest = LargestOf(std::move(need.pieces));
  }
  Need& Of(Device& device) {
    for (Need& need : needs_) {
      if (&need.device->budget() == &device.budget()) return need;
    }
    return needs_.emplace_back(Need{{&device}});
  }
  Need& OfHostMemory(Device& device) { return Of(HostMemoryOf(context_, device)); }
  Need& OfClass(Device& device, int32_t memory_class) {
    return memory_class == MGE_MEMORY_DEVICE ? Of(device) : OfHostMemory(*context_.services->host);
  }
  static PoolNeed& PoolOf(Need& need, Pool* pool) {
    for (PoolNeed& of : need.pools) {
      if (of.pool == pool) return of;
    }
    return need.pools.emplace_back(PoolNeed{pool});
  }
  ConstantKey PlainKey(const Device& device, ValueId v) const {
    return KeyOf(&device, graph_.value(v).constant, graph_.value(v).constant.bytes());
  }
  // Returns true if another plan has packed this form.
  bool IsPacked(const ConstantKey& key, ValueId v) const {
    SharedConstants* known = context_.services->shared_constants.get();
    return known && known->Packed(key, graph_.value(v).constant).defined();
  }
  absl::Status AddUpload(Device& device, ValueId v, const ConstantKey& key, bool packed, bool named) {
    const auto bytes = static_cast<uint64_t>(key.bytes);
    SharedConstants* known = context_.services->shared_constants.get();
    if ((!packed || named) && known && known->Find(key, graph_.value(v).constant).block) return absl::OkStatus();
    MGE_ASSIGN_OR_RETURN(Pool * pool, device.PoolOf());
    PoolNeed& of = PoolOf(Of(device), pool);
    if (DeviceConstants::HasOwnBlock(bytes, packed, named)) {
      of.constants.push_back({DeviceConstants::Aligned(device, bytes), DeviceConstants::AlignmentOn(device)});
    } else {
      of.small += DeviceConstants::Aligned(device, bytes);
    }
    AddPiece(Of(device), v, bytes);
    MGE_ASSIGN_OR_RETURN(Pool * staging, device.PoolOf(MGE_MEMORY_PINNED));
    if (staging_.insert(staging).second) {
      OfClass(device, MGE_MEMORY_PINNED).staging += staging->Footprint(SyncQueue::kMinStaging);
    }
    return absl::OkStatus();
  }
  void AddPiece(Need& need, ValueId v, uint64_t bytes) {
    need.pieces.push_back({fmt::format("constant '{}'", graph_.value(v).name), bytes});
  }

  const Graph& graph_;
  const Cover& cover_;
  const Schedule& schedule_;
  const PreparedKernels& kernels_;
  const MemoryPlan& memory_;
  const PlanContext& context_;
  std::deque<Need> needs_;                                // a deque, since references to elements must stay valid
  std::set<Pool*> staging_;                               // pools whose staging memory has been counted
  std::set<std::pair<const Device*, ValueId>> uploaded_;  // plain constants that have been counted
  std::set<ConstantKey> forms_;                           // packed constants that have been counted
};

// Returns the sentence about the limit. If constants were not folded for lack of memory, adds twice their bytes. With a
// higher limit each is held twice: plain and packed.
std::string HowMuch(Device& device, uint64_t least, uint64_t denied) {
  if (denied == 0) return LeastLimit(device, least);
  const std::string& owner = device.budget().owner();
  return fmt::format(
      "a limit that fits is {}={}: {} bytes for this plan, and memory for constants of {} bytes that "
      "could not be computed within the present limit",
      owner, least + 2 * denied, least, denied);
}

// Checks one budget. `denied` is SpecialisedGraph::denied_bytes if this budget refused them, else 0.
absl::Status Check(const Need& need, uint64_t denied) {
  MGE_ASSIGN_OR_RETURN(MemoryCapacity capacity, CapacityOf(*need.device));
  MemoryNeed now = need;
  now.arena = std::max(need.arena, need.staging);
  const uint64_t needed = PeakOf(now);
  const uint64_t held = need.device->LiveBytes();  // without idle memory, which is released before a request fails
  if (held <= capacity.bytes && needed <= capacity.bytes - held) return absl::OkStatus();
  return DoesNotFit(capacity, PeakText(now, capacity, held),
                    capacity.limited
                        ? HowMuch(*need.device, held + needed, denied)
                        : fmt::format("use a device with {} bytes, or a smaller batch or model", held + needed));
}

absl::StatusOr<std::vector<MemoryNeed>> CheckAll(std::deque<Need> needs, const PlanContext& context, uint64_t denied) {
  std::vector<MemoryNeed> out;
  const Budget* folding = &HostMemoryOf(context, *context.devices.front()).budget();
  for (Need& need : needs) {
    MGE_RETURN_IF_ERROR(Check(need, &need.device->budget() == folding ? denied : 0));
    out.push_back(std::move(need));
    out.back().in_use = out.back().device->budget().in_use();
  }
  return out;
}

}  // namespace

absl::StatusOr<std::vector<MemoryNeed>> CheckMemoryLimits(const Graph& graph, const Cover& cover, const Schedule& schedule,
                                                          const PreparedKernels& kernels, const MemoryPlan& memory,
                                                          const PlanContext& context, int64_t denied_bytes,
                                                          const std::function<bool()>& reclaim_memory) {
  auto check = [&]() -> absl::StatusOr<std::vector<MemoryNeed>> {
    Needs needs(graph, cover, schedule, kernels, memory, context);
    MGE_RETURN_IF_ERROR(needs.Collect());
    return CheckAll(needs.Take(), context, static_cast<uint64_t>(denied_bytes));
  };
  absl::StatusOr<std::vector<MemoryNeed>> needs = check();
  while (ErrorId(needs.status()) == errors::kOverBudget.id && reclaim_memory()) needs = check();
  return needs;
}

}  // namespace mge
