// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "core/plan/memory_limit.h"
#include "core/plan/stages.h"
#include "core/plugin/host_services.h"
#include "fmt/format.h"

namespace mge {

mge_slot Planning::AddConstant(Tensor tensor, int32_t space, bool packed) {
  if (space == kHostSpace) {
    (packed ? plan->packed_bytes : plan->constant_bytes) += tensor.bytes();
    plan->constants.push_back({plan->base_count++, std::move(tensor), packed});
    return {plan->constants.back().base, 0, 0};
  }
  Device* device = spaces[space].device;
  auto& all = plan->device_constants;
  const bool shared = DeviceConstants::IsShared(static_cast<uint64_t>(tensor.bytes()), packed);
  auto fits = [&](const auto& c) { return &c->device() == device && !c->shared(); };
  auto at = shared ? all.end() : std::find_if(all.begin(), all.end(), fits);
  if (at == all.end()) at = all.insert(at, std::make_unique<DeviceConstants>(device, plan->base_count++, shared));
  uint64_t offset = (*at)->Add(std::move(tensor));
  return {(*at)->base(), 0, offset};
}

mge_slot Planning::RawConstant(ValueId v, int32_t space) {
  auto [it, fresh] = raw_constants.try_emplace({v, space});
  if (fresh) it->second = AddConstant(value(v).constant, space, false);
  return it->second;
}

Location Planning::LateConstant(ValueId v) {
  Location location;
  location.kind = Location::Kind::kLate;
  location.index = plan->late_count++;
  plan->late_constants.push_back({location.index, value(v).constant});
  return location;
}

absl::Status PackConstants(Planning& p) {
  for (size_t u = 0; u < p.drafts.size(); ++u) {
    Draft& d = p.drafts[u];
    if (!d.group || !d.prepared.prepack_bytes) continue;
    MGE_RETURN_IF_ERROR(p.CheckStop());
    const mge_kernel_api& api = d.device->kernel_api();
    for (size_t k = 0; k < d.group->inputs.size(); ++k) {
      uint64_t bytes = d.prepared.prepack_bytes[k];
      ValueId v = d.group->inputs[k];
      if (bytes == 0 || !p.IsConstant(v)) continue;
      auto create = [&] { return Tensor::Create(DType::kU8, {static_cast<int64_t>(bytes)}, d.device->host_allocator()); };
      absl::StatusOr<Tensor> packed = create();
      while (!packed.ok()) {
        if (absl::Status over = p.MakeRoom(packed.status(), HostMemoryOf(p, *d.device).budget()); !over.ok()) {
          return AddWhere(std::move(over), fmt::format("{}, the form of '{}' that kernel {} of device {} asks for", p.Place(d),
                                                       p.value(v).name, d.candidate.id, d.device->name()));
        }
        packed = create();
      }
      mge_error error;
      mge_code code = api.prepack(d.prepared.kernel, static_cast<uint32_t>(k), p.value(v).constant.data(),
                                  packed->mutable_data(), &error);
      if (code != MGE_OK) {
        return AddWhere(StatusOfBackend(code, error, fmt::format("packing '{}'", p.value(v).name)), p.Place(d));
      }
      const int32_t space = p.SpaceOf(*d.device);
      SharedConstants* shared = p.context->shared_constants.get();
      if (shared && space == kHostSpace) packed = shared->Packed(d.candidate.id, *std::move(packed));
      p.packed[{u, k}] = p.AddConstant(*std::move(packed), space, true);
    }
  }
  return absl::OkStatus();
}

absl::Status UploadConstants(Planning& p) {
  for (const auto& constants : p.plan->device_constants) p.plan->uploaded_bytes += constants->bytes();
  return UploadAll(p.plan->device_constants, p.context->shared_constants.get(), p.stop,
                   [&](absl::Status over, const Budget& budget) { return p.MakeRoom(std::move(over), budget); });
}

}  // namespace mge
