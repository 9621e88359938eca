// SPDX-License-Identifier: Apache-2.0
#include "device.h"

#include <string>
#include <thread>
#include <utility>

#include "isa.h"

namespace mge::cpu {
namespace {

// Returns the key of tuning results: equal for machines where the same choices are best.
std::string DeviceClass() {
  const Processor& p = ThisProcessor();
  return "cpu-" + std::string(IsaName(p.isa)) + "-" + std::to_string(p.family) + "." + std::to_string(p.model);
}

// Returns the instruction sets that kernels use on this processor, such as "avx512 vnni bf16".
std::string InstructionSets() {
  const Processor& p = ThisProcessor();
  std::string out(IsaName(p.isa));
  const std::pair<bool, const char*> extensions[] = {{p.avx512_vnni, " vnni"},
                                                     {p.avx512_bf16, " bf16"},
                                                     {p.avx512_fp16, " fp16"},
                                                     {p.amx_bf16, " amx-bf16"},
                                                     {p.amx_int8, " amx-int8"}};
  for (const auto& [has, name] : extensions) out += has ? name : "";
  return out;
}

}  // namespace

Result Device::List(DeviceList& list) {
  list.Add({.name = ThisProcessor().name,
            .fingerprint = "cpu:0",
            .device_class = DeviceClass(),
            .flags = MGE_DEVICE_HOST_ACCESSIBLE | MGE_DEVICE_SURVIVES_FORK,
            .memory_total = HostMemoryAmount().total_bytes,
            .properties = {{"cores", std::to_string(std::thread::hardware_concurrency())},
                           {"isa", InstructionSets()},
                           {"compilers", InstalledCompilers()}}});
  return {};
}

}  // namespace mge::cpu
