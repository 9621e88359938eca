// SPDX-License-Identifier: Apache-2.0
#include <string>

#include "backend.h"

namespace mge::virtual_gpu {

Result Device::List(DeviceList& list) {
  const Options& o = CurrentOptions();
  for (int i = 0; i < o.devices; ++i) {
    list.Add({.name = "GPU in software, emulated on the processor",
              .fingerprint = "virtual:" + std::to_string(i),
              .device_class = "virtual-warp" + std::to_string(o.device.emulator.warp),
              .score = o.problem.ok() ? 1u : 0u,
              .reason = o.problem.text(),
              .flags = MGE_DEVICE_ONLY_BY_NAME | (o.gpu ? uint32_t{MGE_DEVICE_GPU} : 0),
              .memory_total = o.device.memory_bytes,
              .max_allocation = o.max_allocation,
              .compute_queues = o.compute_queues});
  }
  return {};
}

Result Device::Init() {
  const Options& o = CurrentOptions();
  if (!o.problem.ok()) return o.problem;
  software::DeviceOptions device = o.device;
  device.number = static_cast<int>(index_);
  device.name = "virtual" + std::to_string(index_);
  device.helpers = {Host()->thread_count(Host()->self), Host()->parallel_for, Host()->self};
  gpu_.emplace(std::move(device));
  return {};
}

Result Device::Link(Device& to, LinkInfo* out) {
  const software::Link& link = gpu_->LinkTo(to.gpu());
  *out = {link.peer, link.bandwidth_gb_s, link.latency_us, link.name};
  return {};
}

}  // namespace mge::virtual_gpu
