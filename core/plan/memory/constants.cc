// SPDX-License-Identifier: Apache-2.0
#include "core/plan/memory/constants.h"

#include <algorithm>
#include <map>
#include <unordered_map>

#include "core/plan/memory/fill_constants.h"
#include "core/plan/memory/memory_capacity.h"
#include "core/plugin/abi_call.h"

namespace mge {
namespace {

// Finds the constants that the steps read, and gives them slots.
class ConstantPlacer {
 public:
  ConstantPlacer(const Graph& graph, const Schedule& schedule, const PreparedKernels& kernels, const MemoryPlan& memory,
                 SharedConstants& table)
      : graph_(graph), schedule_(schedule), kernels_(kernels), memory_(memory), table_(table) {
    out_.base_count = memory.base_count;
  }

  // Sets all slots. Constants that no other plan has are in fresh(), without bytes.
  void Run() {
    AddPacked();
    AddPlain();
  }
  std::vector<NewConstant>& fresh() { return fresh_; }
  // Returns the constants, after the bytes of fresh() have been set.
  PlanConstants Take() {
    for (size_t i = 0; i < fresh_.size(); ++i) {
      if (!fresh_[i].target) out_.host[host_of_[i]].tensor = std::move(fresh_[i].packed);
    }
    for (const ConstantBase& c : out_.host) (c.packed ? out_.packed_bytes : out_.plain_bytes) += c.tensor.bytes();
    for (const auto& c : out_.device) out_.uploaded_bytes += c->bytes();
    return std::move(out_);
  }
  absl::Status AcquireBlocks(const WhenOver& when_over) {
    std::map<Pool*, uint64_t> missing;
    for (const auto& c : out_.device) {
      if (c->block()) continue;
      MGE_ASSIGN_OR_RETURN(Pool * pool, c->device().PoolOf());
      missing[pool] += static_cast<uint64_t>(c->bytes());
    }
    for (const auto& [pool, bytes] : missing) pool->Expect(bytes);
    absl::Status acquired;
    for (const auto& c : out_.device) {
      if (acquired.ok()) acquired = c->Acquire(when_over);
    }
    for (const auto& [pool, bytes] : missing) pool->Expect(0);
    return acquired;
  }

 private:
  void AddPacked() {
    for (size_t u = 0; u < schedule_.units.size(); ++u) {
      const PlannedUnit& unit = schedule_.units[u];
      const uint64_t* bytes = kernels_.units[u].prepared.prepack_bytes;
      if (!unit.group || !bytes) continue;
      for (size_t k = 0; k < unit.group->inputs.size(); ++k) {
        if (bytes[k] == 0 || !IsConstantValue(graph_, unit.group->inputs[k])) continue;
        out_.packed[{u, k}] = PackedConstant(unit, kernels_.units[u].prepared, k);
      }
    }
  }

  // Adds the constants that steps and outputs read in their plain form.
  void AddPlain() {
    for (size_t u = 0; u < schedule_.units.size(); ++u) {
      const PlannedUnit& unit = schedule_.units[u];
      if (!unit.group) continue;
      const bool on_device =
          unit.kind == Unit::Kind::kKernel || unit.kind == Unit::Kind::kCollective || unit.group->target >= 0;
      const int32_t space = on_device ? schedule_.SpaceOf(*unit.device) : kHostSpace;
      for (size_t k = 0; k < unit.group->inputs.size(); ++k) {
        const ValueId v = unit.group->inputs[k];
        if (IsConstantValue(graph_, v) && HasSlot(graph_.value(v)) && !out_.packed.contains({u, k})) AddPlain(v, space);
      }
    }
    for (const OutputCopy& copy : memory_.output_copies) {
      if (copy.item < 0) AddPlain(copy.value, kHostSpace);
    }
  }

  void AddPlain(ValueId v, int32_t space) {
    auto [at, is_new] = out_.plain.try_emplace({v, space});
    if (!is_new) return;
    const Tensor& tensor = graph_.value(v).constant;
    NewConstant c;
    c.value = &graph_.value(v);
    c.shared = true;
    c.key = KeyOf(space == kHostSpace ? nullptr : schedule_.spaces[space].device, tensor, tensor.bytes());
    if (space != kHostSpace) {
      at->second = OnDevice(std::move(c));
    } else {
      at->second = tensor.lazy() ? OnHost(std::move(c)) : AddHost(tensor, false);
    }
  }

  mge_slot AddHost(Tensor tensor, bool packed) {
    out_.host.push_back({out_.base_count++, std::move(tensor), packed});
    return {out_.host.back().base, 0, 0};
  }

  // Returns the slot of the packed form of operand k. Uses the form of this plan or of another plan of the session, if there
  // is one.
  mge_slot PackedConstant(const PlannedUnit& unit, const mge_prepared& prepared, size_t k) {
    NewConstant c;
    c.unit = &unit;
    c.kernel = prepared.kernel;
    c.operand = static_cast<uint32_t>(k);
    c.value = &graph_.value(unit.group->inputs[k]);
    c.key = PackedKey(graph_, unit, prepared, k);
    c.shared = !c.key.form.empty();
    if (!c.shared) return NewForm(std::move(c));
    if (auto known = forms_.find(c.key); known != forms_.end()) return known->second;
    const ConstantKey key = c.key;
    return forms_[key] = NewForm(std::move(c));
  }

  mge_slot NewForm(NewConstant c) {
    if (schedule_.SpaceOf(*c.unit->device) == kHostSpace) return OnHost(std::move(c));
    out_.uploaded_packed_bytes += c.key.bytes;
    return OnDevice(std::move(c));
  }

  // Returns the slot of a constant in host memory that the plan keeps: a packed form, or the plain form of a lazy constant.
  mge_slot OnHost(NewConstant c) {
    if (Tensor known = c.shared ? table_.Packed(c.key, c.value->constant) : Tensor(); known.defined()) {
      return AddHost(std::move(known), true);
    }
    host_of_[fresh_.size()] = out_.host.size();
    fresh_.push_back(std::move(c));
    return AddHost({}, true);
  }

  // Returns the slot of a constant in a device's memory. Adds it to a block of this plan if no other plan has it.
  mge_slot OnDevice(NewConstant c) {
    Device* device = const_cast<Device*>(c.key.device);
    if (PlacedConstant known = c.shared ? table_.Find(c.key, c.value->constant) : PlacedConstant(); known.block) {
      return {Known(std::move(known.block)).base(), 0, known.offset};
    }
    const auto bytes = static_cast<uint64_t>(c.key.bytes);
    c.target = &BlockFor(device, bytes, DeviceConstants::HasOwnBlock(bytes, c.unit != nullptr, c.shared));
    c.offset = c.target->Add(bytes);
    fresh_.push_back(std::move(c));
    return {fresh_.back().target->base(), 0, fresh_.back().offset};
  }

  // Returns the base of a block that another plan has added.
  DeviceConstants& Known(std::shared_ptr<ConstantBlock> block) {
    DeviceConstants*& known = known_[block.get()];
    if (!known) known = NewBlock(std::make_unique<DeviceConstants>(std::move(block), out_.base_count++));
    return *known;
  }

  // Returns a block that this plan adds and that has room.
  DeviceConstants& BlockFor(Device* device, uint64_t bytes, bool single) {
    std::vector<DeviceConstants*>& shared = shared_blocks_[device];
    const auto more = static_cast<int64_t>(DeviceConstants::Aligned(*device, bytes));
    auto has_room = [&](const DeviceConstants* c) { return c->bytes() <= LargestPiece(*device) - more; };
    auto at = single ? shared.end() : std::find_if(shared.begin(), shared.end(), has_room);
    if (!single && at != shared.end()) return **at;
    DeviceConstants* made = NewBlock(std::make_unique<DeviceConstants>(device, out_.base_count++, single));
    if (!single) shared.push_back(made);
    return *made;
  }

  DeviceConstants* NewBlock(std::unique_ptr<DeviceConstants> block) {
    return out_.device.emplace_back(std::move(block)).get();
  }

  const Graph& graph_;
  const Schedule& schedule_;
  const PreparedKernels& kernels_;
  const MemoryPlan& memory_;
  SharedConstants& table_;
  std::map<ConstantKey, mge_slot> forms_;                             // packed constants of this plan
  std::unordered_map<const ConstantBlock*, DeviceConstants*> known_;  // blocks of other plans
  std::map<Device*, std::vector<DeviceConstants*>> shared_blocks_;    // blocks of this plan for several constants
  std::vector<NewConstant> fresh_;
  std::map<size_t, size_t> host_of_;  // index in fresh_ -> index in out_.host
  PlanConstants out_;
};

uint64_t LiveBytes(const PlanContext& context) {
  uint64_t bytes = 0;
  for (Device* device : context.devices) bytes += device->LiveBytes();
  return bytes;
}

}  // namespace

ConstantKey PackedKey(const Graph& graph, const PlannedUnit& unit, const mge_prepared& prepared, size_t k) {
  const mge_text* forms = prepared.prepack_forms;
  return KeyOf(unit.device, graph.value(unit.group->inputs[k]).constant, static_cast<int64_t>(prepared.prepack_bytes[k]),
               forms ? CopyText(forms[k]) : std::string());
}

absl::StatusOr<PlanConstants> PlaceConstants(const Graph& graph, const Schedule& schedule, const PreparedKernels& kernels,
                                             const MemoryPlan& memory, const PlanContext& context, const StopControl* stop,
                                             const WhenOver& when_over) {
  SharedConstants of_plan;
  SharedConstants& table = context.services->shared_constants ? *context.services->shared_constants : of_plan;
  std::lock_guard lock(context.caches->placing.mutex);
  const uint64_t before = LiveBytes(context);
  ConstantPlacer placer(graph, schedule, kernels, memory, table);
  placer.Run();
  MGE_RETURN_IF_ERROR(placer.AcquireBlocks(when_over));
  MGE_RETURN_IF_ERROR(FillConstants(graph, schedule, placer.fresh(), table, context, stop, when_over));
  PlanConstants out = placer.Take();
  out.measured_bytes = static_cast<int64_t>(LiveBytes(context) - before);
  return out;
}

}  // namespace mge
