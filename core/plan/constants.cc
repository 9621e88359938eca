// SPDX-License-Identifier: Apache-2.0
#include "core/plugin/host_services.h"
#include "core/plan/stages.h"
#include "fmt/format.h"

namespace mge {

mge_slot Planning::RawConstant(ValueId v) {
  auto [it, fresh] = raw_constants.try_emplace(v, plan->base_count);
  if (fresh) {
    plan->constants.push_back({plan->base_count++, value(v).constant, false});
    plan->constant_bytes += value(v).constant.bytes();
  }
  return {it->second, 0, 0};
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
    if (!d.prepared.prepack_bytes) continue;
    const mge_kernel_api& api = d.device->kernel_api();
    for (size_t k = 0; k < d.group->inputs.size(); ++k) {
      uint64_t bytes = d.prepared.prepack_bytes[k];
      ValueId v = d.group->inputs[k];
      if (bytes == 0 || !p.IsConstant(v)) continue;
      MGE_ASSIGN_OR_RETURN(Tensor packed, Tensor::Create(DType::kU8, {static_cast<int64_t>(bytes)},
                                                         d.device->host_allocator()));
      mge_error error;
      mge_code code = api.prepack(d.prepared.kernel, static_cast<uint32_t>(k), p.value(v).constant.data(),
                                  packed.mutable_data(), &error);
      if (code != MGE_OK) {
        return AddWhere(StatusOfBackend(code, error, fmt::format("packing '{}'", p.value(v).name)), p.Place(d));
      }
      p.packed[{u, k}] = p.plan->base_count;
      p.plan->packed_bytes += packed.bytes();
      p.plan->constants.push_back({p.plan->base_count++, std::move(packed), true});
    }
  }
  return absl::OkStatus();
}

}  // namespace mge
