// SPDX-License-Identifier: Apache-2.0
#include "device.h"

#include <string>

#include "isa.h"

namespace mge::cpu {
namespace {

// Returns the key of tuning results: equal for machines where the same choices are best.
std::string DeviceClass() {
  const Processor& p = ThisProcessor();
  return "cpu-" + std::string(IsaName(p.isa)) + "-" + std::to_string(p.family) + "." + std::to_string(p.model);
}

}  // namespace

Result Device::List(DeviceList& list) {
  list.Add({.name = ThisProcessor().name,
            .fingerprint = "cpu:0",
            .device_class = DeviceClass(),
            .flags = MGE_DEVICE_HOST_ACCESSIBLE | MGE_DEVICE_SURVIVES_FORK,
            .memory_total = HostMemoryAmount().total_bytes});
  return {};
}

}  // namespace mge::cpu
