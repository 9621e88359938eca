// SPDX-License-Identifier: Apache-2.0
#include "core/plan/memory/memory_limit.h"

#include <algorithm>
#include <deque>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/base/errors.h"
#include "core/plan/memory/device_constants.h"
#include "core/plan/memory/memory_capacity.h"
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
  explicit Needs(const PlanBuilder& p) : p_(p) {}

  absl::Status Collect() {
    for (size_t a = 0; a < p_.plan->arenas.size(); ++a) {
      const Arena& arena = p_.plan->arenas[a];
      if (arena.bytes == 0) continue;
      Need& need = OfClass(*arena.device, arena.memory_class);
      MGE_ASSIGN_OR_RETURN(Pool * pool, arena.device->PoolOf(arena.memory_class));
      PoolOf(need, pool).all.push_back({static_cast<uint64_t>(arena.bytes)});
      for (const PlacedBuffer& b : p_.plan->buffers) {
        if (b.arena != static_cast<int32_t>(a)) continue;
        need.pieces.push_back({fmt::format("'{}', steps {}..{}", b.name, b.first, b.last), static_cast<uint64_t>(b.bytes)});
      }
    }
    std::set<std::pair<const Device*, ValueId>> uploaded;
    std::set<ConstantKey> forms;
    for (const PlannedUnit& d : p_.planned_units) {
      if (!d.group || d.unit.kind != Unit::Kind::kKernel) continue;
      for (size_t k = 0; k < d.group->inputs.size(); ++k) {
        ValueId v = d.group->inputs[k];
        if (!p_.IsConstant(v)) continue;
        const uint64_t packed = d.prepared.prepack_bytes ? d.prepared.prepack_bytes[k] : 0;
        const ConstantKey key = packed ? PackedKey(p_, d, k) : PlainKey(*d.device, v);
        const bool named = packed && !key.form.empty();
        if (named && !forms.insert(key).second) continue;
        if (HasQueues(*d.device)) {
          if (packed == 0 && !uploaded.emplace(d.device, v).second) continue;
          MGE_RETURN_IF_ERROR(AddUpload(*d.device, v, key, packed != 0, named));
        } else if (packed && !(named && IsPacked(key, v))) {
          Need& need = OfHostMemory(*d.device);
          need.constants += packed;
          AddPiece(need, v, packed);
        }
      }
    }
    for (ValueId v : p_.graph.outputs()) {
      if (p_.IsDeferred(v) || !p_.HasSlot(v)) continue;
      const TensorType& type = p_.value(v).type;
      Need& need = OfHostMemory(*p_.plan->device);
      auto bytes = static_cast<uint64_t>(Elements(type.dims) * ElementBytes(type.dtype));
      need.outputs += bytes;
      need.pieces.push_back({fmt::format("output '{}'", p_.value(v).name), bytes});
    }
    for (Need& need : needs_) {
      for (PoolNeed& of : need.pools) {
        const auto most = static_cast<uint64_t>(LargestPiece(*need.device));
        for (uint64_t left = of.small; left > 0; left -= std::min(left, most)) {
          of.constants.push_back({std::min(left, most), DeviceConstants::kAlignment});
        }
        of.all.insert(of.all.begin(), of.constants.begin(), of.constants.end());
        const uint64_t constants = of.pool->Footprint(of.constants);
        need.constants += constants;
        need.arena += of.pool->Footprint(of.all) - constants;
      }
      need.largest = LargestOf(std::move(need.pieces));
    }
    return absl::OkStatus();
  }

  std::deque<Need>& all() { return needs_; }

 private:
  Need& Of(Device& device) {
    for (Need& need : needs_) {
      if (&need.device->budget() == &device.budget()) return need;
    }
    return needs_.emplace_back(Need{{&device}});
  }
  Need& OfHostMemory(Device& device) { return Of(HostMemoryOf(p_, device)); }
  Need& OfClass(Device& device, int32_t memory_class) {
    return memory_class == MGE_MEMORY_DEVICE ? Of(device) : OfHostMemory(*p_.context->host);
  }
  static PoolNeed& PoolOf(Need& need, Pool* pool) {
    for (PoolNeed& of : need.pools) {
      if (of.pool == pool) return of;
    }
    return need.pools.emplace_back(PoolNeed{pool});
  }
  ConstantKey PlainKey(const Device& device, ValueId v) const {
    return {&device, p_.value(v).constant.data(), p_.value(v).constant.bytes()};
  }
  // Returns true if another plan has packed this form.
  bool IsPacked(const ConstantKey& key, ValueId v) const {
    SharedConstants* known = p_.context->shared_constants.get();
    return known && known->Packed(key, p_.value(v).constant).defined();
  }
  absl::Status AddUpload(Device& device, ValueId v, const ConstantKey& key, bool packed, bool named) {
    const auto bytes = static_cast<uint64_t>(key.bytes);
    const bool shared = DeviceConstants::IsShared(bytes, packed, named);
    SharedConstants* known = p_.context->shared_constants.get();
    if (shared && known && known->Block(key, p_.value(v).constant)) return absl::OkStatus();
    MGE_ASSIGN_OR_RETURN(Pool * pool, device.PoolOf());
    PoolNeed& of = PoolOf(Of(device), pool);
    if (shared) {
      of.constants.push_back({DeviceConstants::Aligned(bytes), DeviceConstants::kAlignment});
    } else {
      of.small += DeviceConstants::Aligned(bytes);
    }
    AddPiece(Of(device), v, bytes);
    MGE_ASSIGN_OR_RETURN(Pool * staging, device.PoolOf(MGE_MEMORY_PINNED));
    if (staging_.insert(staging).second) {
      OfClass(device, MGE_MEMORY_PINNED).staging += staging->Footprint(SyncQueue::kLeastStaging);
    }
    return absl::OkStatus();
  }
  void AddPiece(Need& need, ValueId v, uint64_t bytes) {
    need.pieces.push_back({fmt::format("constant '{}'", p_.value(v).name), bytes});
  }

  const PlanBuilder& p_;
  std::deque<Need> needs_;   // a deque, since references to elements must stay valid
  std::set<Pool*> staging_;  // pools whose staging memory has been counted
};

// Returns a sentence that names the smallest sufficient limit. A pool of the backend's own may take more than is requested,
// so the sentence then gives a lower bound only.
std::string LeastLimit(Device& device, uint64_t least) {
  const Budget& budget = device.budget();
  if (!device.memory_api().own_pool) return fmt::format("the smallest limit that fits is {}={}", budget.owner(), least);
  return fmt::format("a limit that fits is above {}={}: the pool of backend {} may take more than is requested",
                     budget.owner(), std::max(least, budget.limit()), device.backend().name());
}

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

uint64_t PeakOf(const MemoryNeed& need) { return need.arena + need.constants + need.outputs; }

std::string PeakText(const MemoryNeed& need, const MemoryCapacity& capacity, uint64_t held) {
  return fmt::format("the planned peak is {} bytes (arena {}, constants {}, outputs {}); {}; the largest are {}",
                     PeakOf(need), need.arena, need.constants, need.outputs, CapacityText(capacity, held), need.largest);
}

// Returns the plan's need of `budget` if `over` is kOverBudget, else nullptr.
const MemoryNeed* NeedOf(const absl::Status& over, const Plan& plan, const Budget& budget) {
  if (ErrorId(over) != errors::kOverBudget.id) return nullptr;
  auto need = std::find_if(plan.needs.begin(), plan.needs.end(),
                           [&](const MemoryNeed& n) { return &n.device->budget() == &budget; });
  return need == plan.needs.end() ? nullptr : &*need;
}

absl::Status RunDoesNotFit(const Budget& budget, std::string what, std::string fix) {
  return Fail(errors::kOverBudget,
              fmt::format("a run of the model does not fit into the memory limit of device {} beside what is in use",
                          budget.owner()),
              {.what = std::move(what), .where = fmt::format("memory.limit of {}", budget.owner()), .fix = std::move(fix)});
}

// Checks one budget. `denied` is PlanBuilder::denied_bytes if this budget refused them, else 0.
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

}  // namespace

Device& HostMemoryOf(const PlanBuilder& p, Device& device) {
  return device.Is(MGE_DEVICE_HOST_ACCESSIBLE) ? device : *p.context->host;
}

absl::Status CheckMemoryLimits(PlanBuilder& p) {
  Needs needs(p);
  MGE_RETURN_IF_ERROR(needs.Collect());
  p.plan->needs.clear();
  const Budget* folding = &HostMemoryOf(p, *p.plan->device).budget();
  for (Need& need : needs.all()) {
    const bool denied = &need.device->budget() == folding;
    MGE_RETURN_IF_ERROR(Check(need, denied ? static_cast<uint64_t>(p.denied_bytes) : 0));
    p.plan->needs.push_back(need);
    p.plan->needs.back().in_use = need.device->budget().in_use();
  }
  return absl::OkStatus();
}

absl::Status NameConstants(absl::Status over, const Plan& plan, const Budget& budget) {
  const MemoryNeed* need = NeedOf(over, plan, budget);
  if (!need) return over;
  const MemoryCapacity capacity = {need->device, budget.limit(), true};
  return DoesNotFit(capacity, PeakText(*need, capacity, need->in_use),
                    fmt::format("a limit that fits is {}={}", budget.owner(), need->in_use + PeakOf(*need)));
}

absl::Status NamePlan(absl::Status over, const Plan& plan, const Budget& budget, uint64_t taken) {
  const MemoryNeed* need = NeedOf(over, plan, budget);
  if (!need) return over;
  // Everything reclaimable has been released; what remains includes the plan's constants.
  const uint64_t charged = budget.in_use(), held = charged - std::min(taken, charged);
  return RunDoesNotFit(budget, PeakText(*need, {need->device, budget.limit(), true}, held),
                       fmt::format("{}; or run it on fewer threads at a time",
                                   LeastLimit(*need->device, held + need->arena + need->outputs)));
}

absl::Status NameDynamic(absl::Status over, const Plan& plan, const Budget& budget, uint64_t bytes) {
  const MemoryNeed* need = NeedOf(over, plan, budget);
  if (!need) return over;
  const uint64_t held = budget.in_use();
  return RunDoesNotFit(
      budget,
      fmt::format("{} bytes were requested by a step whose memory is not planned, since its size is known "
                  "only during the run; {}",
                  bytes, PeakText(*need, {need->device, budget.limit(), true}, held)),
      fmt::format("the smallest limit for this step is {}={}; or use a smaller batch", budget.owner(), held + bytes));
}

}  // namespace mge
