// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "core/plan/memory/memory_capacity.h"
#include "core/plan/memory/memory_limit.h"
#include "core/plan/stages.h"
#include "core/plugin/abi_call.h"
#include "core/plugin/host_services.h"
#include "fmt/format.h"

namespace mge {

mge_slot PlanBuilder::AddConstant(Tensor tensor, int32_t space, bool packed) {
  if (space == kHostSpace) {
    (packed ? plan->packed_bytes : plan->constant_bytes) += tensor.bytes();
    plan->constants.push_back({plan->base_count++, std::move(tensor), packed});
    return {plan->constants.back().base, 0, 0};
  }
  Device* device = spaces[space].device;
  auto& all = plan->device_constants;
  const auto bytes = static_cast<int64_t>(DeviceConstants::Aligned(static_cast<uint64_t>(tensor.bytes())));
  auto at = std::find_if(all.begin(), all.end(), [&](const auto& c) {
    return &c->device() == device && !c->shared() && c->bytes() <= LargestPiece(*device) - bytes;
  });
  if (at == all.end()) at = all.insert(at, std::make_unique<DeviceConstants>(device, plan->base_count++));
  uint64_t offset = (*at)->Add(std::move(tensor));
  return {(*at)->base(), 0, offset};
}

mge_slot PlanBuilder::AddSharedConstant(ConstantKey key, const Tensor& source, Tensor tensor,
                                        std::shared_ptr<ConstantBlock> block) {
  auto constants = std::make_unique<DeviceConstants>(const_cast<Device*>(key.device), plan->base_count++);
  constants->AddShared(std::move(key), source, std::move(tensor), std::move(block));
  plan->device_constants.push_back(std::move(constants));
  return {plan->device_constants.back()->base(), 0, 0};
}

mge_slot PlanBuilder::RawConstant(ValueId v, int32_t space) {
  auto [it, fresh] = raw_constants.try_emplace({v, space});
  if (!fresh) return it->second;
  const Tensor& tensor = value(v).constant;
  if (space != kHostSpace && DeviceConstants::IsShared(static_cast<uint64_t>(tensor.bytes()), false, false)) {
    ConstantKey key = {spaces[space].device, tensor.data(), tensor.bytes()};
    return it->second = AddSharedConstant(std::move(key), tensor, tensor, nullptr);
  }
  return it->second = AddConstant(tensor, space, false);
}

Location PlanBuilder::DynamicConstant(ValueId v) {
  Location location;
  location.kind = Location::Kind::kDynamic;
  location.index = plan->dynamic_count++;
  plan->dynamic_constants.push_back({location.index, value(v).constant});
  return location;
}

namespace {

// Packs operand k with the kernel of a planned unit. If a budget refuses the memory, releases other plans and tries again.
absl::StatusOr<Tensor> Pack(PlanBuilder& p, const PlannedUnit& d, size_t k) {
  const ValueId v = d.group->inputs[k];
  const auto bytes = static_cast<int64_t>(d.prepared.prepack_bytes[k]);
  auto create = [&] { return Tensor::Create(DType::kU8, {bytes}, d.device->host_allocator()); };
  absl::StatusOr<Tensor> packed = create();
  while (!packed.ok()) {
    if (absl::Status over = p.ReclaimMemory(packed.status(), HostMemoryOf(p, *d.device).budget()); !over.ok()) {
      return AddWhere(std::move(over), fmt::format("{}, the form of '{}' that kernel {} of device {} asks for", p.Place(d),
                                                   p.value(v).name, d.candidate.id, d.device->name()));
    }
    packed = create();
  }
  mge_error error;
  mge_code code = d.device->kernel_api().prepack(d.prepared.kernel, static_cast<uint32_t>(k), p.value(v).constant.data(),
                                                 packed->mutable_data(), &error);
  if (code != MGE_OK) {
    return AddWhere(StatusOfBackend(code, error, fmt::format("packing '{}'", p.value(v).name)), p.Place(d));
  }
  return packed;
}

// Returns the slot of the packed form of operand k. Uses the form of this plan or of another plan of the session, if there
// is one.
absl::StatusOr<mge_slot> PackedConstant(PlanBuilder& p, const PlannedUnit& d, size_t k) {
  const Tensor& source = p.value(d.group->inputs[k]).constant;
  ConstantKey key = PackedKey(p, d, k);
  const bool named = !key.form.empty();
  if (auto known = p.packed_forms.find(key); named && known != p.packed_forms.end()) return known->second;
  SharedConstants* shared = p.context->shared_constants.get();
  const int32_t space = p.SpaceOf(*d.device);
  mge_slot slot = {};
  if (space != kHostSpace) {
    const bool own = DeviceConstants::IsShared(static_cast<uint64_t>(key.bytes), true, named);
    std::shared_ptr<ConstantBlock> block = own && shared ? shared->Block(key, source) : nullptr;
    Tensor packed;
    if (!block) {
      MGE_ASSIGN_OR_RETURN(packed, Pack(p, d, k));
    }
    slot = own ? p.AddSharedConstant(key, source, std::move(packed), std::move(block))
               : p.AddConstant(std::move(packed), space, true);
  } else {
    Tensor packed = shared && named ? shared->Packed(key, source) : Tensor();
    if (!packed.defined()) {
      MGE_ASSIGN_OR_RETURN(packed, Pack(p, d, k));
      if (!named) key.form = d.candidate.id;
      if (shared) packed = shared->Add(key, source, std::move(packed));
    }
    slot = p.AddConstant(std::move(packed), space, true);
  }
  if (named) p.packed_forms[std::move(key)] = slot;
  return slot;
}

}  // namespace

ConstantKey PackedKey(const PlanBuilder& p, const PlannedUnit& d, size_t k) {
  const mge_text* forms = d.prepared.prepack_forms;
  return {d.device, p.value(d.group->inputs[k]).constant.data(), static_cast<int64_t>(d.prepared.prepack_bytes[k]),
          forms ? CopyText(forms[k]) : std::string()};
}

absl::Status PackConstants(PlanBuilder& p) {
  for (size_t u = 0; u < p.planned_units.size(); ++u) {
    PlannedUnit& d = p.planned_units[u];
    if (!d.group || !d.prepared.prepack_bytes) continue;
    MGE_RETURN_IF_ERROR(p.CheckStop());
    for (size_t k = 0; k < d.group->inputs.size(); ++k) {
      if (d.prepared.prepack_bytes[k] == 0 || !p.IsConstant(d.group->inputs[k])) continue;
      MGE_ASSIGN_OR_RETURN(mge_slot slot, PackedConstant(p, d, k));
      p.packed[{u, k}] = slot;
    }
  }
  return absl::OkStatus();
}

absl::Status UploadConstants(PlanBuilder& p) {
  for (const auto& constants : p.plan->device_constants) p.plan->uploaded_bytes += constants->bytes();
  return UploadAll(p.plan->device_constants, p.context->shared_constants.get(), p.stop,
                   [&](absl::Status over, const Budget& budget) { return p.ReclaimMemory(std::move(over), budget); });
}

}  // namespace mge
