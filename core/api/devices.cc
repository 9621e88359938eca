// SPDX-License-Identifier: Apache-2.0
// The devices of a runtime, one by one.
#include <algorithm>
#include <cstring>
#include <memory>
#include <string_view>
#include <vector>

#include "core/api/objects.h"
#include "core/api/options.h"
#include "fmt/format.h"

using mge::api::Misuse;

namespace mge::api {

DeviceState StateOf(Device& device) {
  DeviceState out = {.works = device.usable(),
                     .reason = device.reason(),
                     .total_bytes = device.description().memory_total,
                     .free_bytes = 0};
  if (!out.works) return out;
  if (const auto info = device.QueryMemory(); info.ok()) {
    out.total_bytes = info->total_bytes;
    out.free_bytes = info->free_bytes;
  } else {
    out.works = false;
    const std::string why = PartsOf(info.status()).what;
    out.reason = ErrorTitle(info.status());
    if (!why.empty()) out.reason += ": " + why;
  }
  return out;
}

}  // namespace mge::api

namespace {

template <size_t kSize>
void SetText(std::string_view text, char (&out)[kSize]) {
  text.copy(out, kSize - 1);
}

}  // namespace

size_t mge_runtime_device_count(mge_runtime* runtime) {
  if (!runtime) return 0;
  runtime->runtime->StartBackends();
  return runtime->runtime->devices().all().size();
}

mge_status* mge_runtime_device(mge_runtime* runtime, size_t index, mge_device_facts* out) try {
  MGE_API_NEEDS({"runtime", runtime}, {"out", out});
  MGE_API_RETURN_IF_ERROR(mge::api::CheckStructSize<mge_device_facts>(out->struct_size, "mge_device_facts"));
  const std::vector<std::shared_ptr<mge::Device>> devices = runtime->runtime->devices().all();
  if (index >= devices.size()) {
    return Misuse("mge_runtime_device", fmt::format("device {} of {} devices", index, devices.size()));
  }
  mge::Device& device = *devices[index];
  const mge::api::DeviceState state = mge::api::StateOf(device);
  mge_device_facts facts = {};
  facts.struct_size = out->struct_size;
  SetText(device.name(), facts.name);
  SetText(device.gpu_name(), facts.gpu_name);
  SetText(device.class_name(), facts.device_class);
  SetText(device.backend().name(), facts.backend);
  SetText(device.description().name, facts.description);
  facts.total_bytes = state.total_bytes;
  facts.free_bytes = state.free_bytes;
  const uint64_t limit = device.budget().limit();
  facts.limit_bytes = limit > 0 ? limit : UINT64_MAX;
  facts.compute_queues = static_cast<uint32_t>(device.description().compute_queues);
  facts.usable = state.works;
  std::memcpy(out, &facts, std::min(out->struct_size, sizeof(facts)));
  return nullptr;
}
MGE_API_CATCH
