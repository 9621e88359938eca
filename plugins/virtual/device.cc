// SPDX-License-Identifier: Apache-2.0
#include <chrono>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include "backend.h"

namespace mge::virtual_gpu {
namespace {

// Returns the rate of the memory in which the devices keep their data, in 10^9 bytes per second: that of one copy.
double MeasureMemory() {
  constexpr size_t kBytes = 4 << 20;
  std::vector<char> from(kBytes, 1), to(kBytes, 2);  // written, so that the copy maps no pages
  const auto begin = std::chrono::steady_clock::now();
  std::memcpy(to.data(), from.data(), kBytes);
  const std::chrono::duration<double, std::nano> took = std::chrono::steady_clock::now() - begin;
  return 2.0 * kBytes / (took.count() + to[0]);
}

std::vector<DeviceProperty> PropertiesOf(int device) {
  static const int memory_gb_s = static_cast<int>(MeasureMemory() + 0.5);
  std::string number = std::to_string(device);
  number.insert(0, 2 - number.size(), '0');
  return {{"uuid", "76697274-7561-6c00-0000-0000000000" + number},  // "virtual" in ASCII
          {"pci", "none"},
          {"capability", "software"},
          {"multiprocessors", std::to_string(Host()->thread_count(Host()->self))},
          {"memory_gb_s", std::to_string(memory_gb_s)}};
}

// Loads the program of a device from the host's cache. If it is not there, "compiles" and stores it. The binary is a text
// that depends on the device alone, because kernels of this backend need no compiler.
void LoadProgram(const Options& o, const std::string& device) {
  const std::string key = "program of " + device + ", warp " + std::to_string(o.device.emulator.warp);
  const std::string expected = "binary: " + key;
  std::string binary;
  if (LoadBlob(key, &binary) && binary == expected) return Log(MGE_LOG_INFO, device + ": its program was cached");
  std::this_thread::sleep_for(std::chrono::duration<double, std::milli>(o.compile_ms));
  const bool stored = StoreBlob(key, expected);
  Log(MGE_LOG_INFO, device + ": its program was compiled" + (stored ? " and cached" : ""));
}

// Fails if the host's setting jit.backend names a compiler: this backend has none.
Result CheckCompilerSetting() {
  std::string_view wanted;
  if (!ReadCoreSetting("jit.backend", &wanted).ok() || wanted == "auto") return {};
  return {MGE_UNAVAILABLE, "jit.backend is " + std::string(wanted) +
                               ", but a GPU in software compiles no kernels at run time; set jit.backend to auto"};
}

}  // namespace

Result Device::List(DeviceList& list) {
  const Options& o = CurrentOptions();
  for (int i = 0; i < o.devices; ++i) {
    list.Add({.name = "GPU in software, emulated on the processor",
              .fingerprint = "virtual:" + std::to_string(i),
              .device_class = "virtual-warp" + std::to_string(o.device.emulator.warp),
              .score = o.problem.ok() ? 1u : 0u,
              .reason = o.problem.text(),
              .flags = MGE_DEVICE_ONLY_BY_NAME | (o.gpu ? uint32_t{MGE_DEVICE_GPU} : 0) |
                       (o.reopen ? uint32_t{MGE_DEVICE_REOPENABLE} : 0),
              .memory_total = o.device.memory_bytes,
              .max_allocation = o.max_allocation,
              .buffer_alignment = o.buffer_alignment,
              .compute_queues = o.compute_queues,
              .properties = PropertiesOf(i)});
  }
  return {};
}

Result Device::Init() {
  const Options& o = CurrentOptions();
  if (!o.problem.ok()) return o.problem;
  if (Result r = CheckCompilerSetting(); !r.ok()) return r;
  software::DeviceOptions device = o.device;
  device.number = static_cast<int>(index_);
  device.name = "virtual" + std::to_string(index_);
  device.helpers = {Host()->thread_count(Host()->self), Host()->parallel_for, Host()->self};
  if (o.compile_ms > 0) LoadProgram(o, device.name);
  gpu_.emplace(std::move(device));
  return {};
}

Result Device::Link(Device& to, LinkInfo* out) {
  const software::Link& link = gpu_->LinkTo(to.gpu());
  *out = {link.peer, link.bandwidth_gb_s, link.latency_us, link.name};
  return {};
}

}  // namespace mge::virtual_gpu
