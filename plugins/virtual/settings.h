// SPDX-License-Identifier: Apache-2.0
// The settings of this backend, and the devices that they describe.
#pragma once

#include <string>

#include "mge/plugin.hpp"
#include "plugins/gpu/software/device.h"

namespace mge::virtual_gpu {

inline constexpr mge_setting kDevices =
    IntSetting("virtual.devices", "0", 0, 64, "devices", "Number of GPUs in software: virtual0, virtual1 and so on.");
inline constexpr mge_setting kGpu =
    BoolSetting("virtual.gpu", "false", "Make the devices also available as gpu0, gpu1 and so on.");
inline constexpr mge_setting kMemory =
    BytesSetting("virtual.memory_bytes", "1GiB", 1 << 16, 0x1p46, "Memory of each device.");
inline constexpr mge_setting kMaxAllocation =
    BytesSetting("virtual.max_allocation_bytes", "64TiB", 1, 0x1p46, "Largest single allocation; 64TiB is no limit.");
inline constexpr mge_setting kBufferAlignment =
    ChoiceSetting("virtual.buffer_alignment", "64", "64|128|256|512|1024|2048|4096",
                  "Alignment of every operand that the devices require.", "bytes");
inline constexpr mge_setting kComputeQueues =
    IntSetting("virtual.compute_queues", "1", 1, 64, "queues", "Number of compute queues of each device that plans use.");
inline constexpr mge_setting kLinks =
    TextSetting("virtual.links", "",
                "File with the link matrix of the devices, with optional links to the host; without a file all are peers at "
                "the speed of memory.");
inline constexpr mge_setting kBandwidth =
    DoubleSetting("virtual.bandwidth_gb_s", "0", 0, 1e6, "GB/s",
                  "Simulated bandwidth between host and device per direction; 0 means the speed of memory.");
inline constexpr mge_setting kLatency =
    DoubleSetting("virtual.latency_us", "0", 0, 1e6, "us", "Simulated latency of a copy between host and device.");
inline constexpr mge_setting kLaunchLatency = DoubleSetting(
    "virtual.launch_latency_us", "0", 0, 1e6, "us", "Simulated delay from a kernel's turn on its queue to its start.");
inline constexpr mge_setting kFault =
    TextSetting("virtual.fault", "",
                "Injected faults, such as copy@2=fail or 1:kernel@5+=slow(20ms): allocation, copy, kernel or any; fail, "
                "slow(TIME), hang or lost.");
inline constexpr mge_setting kPoison =
    BoolSetting("virtual.poison", "false", "Fill new device memory with NaN instead of zeros.");
inline constexpr mge_setting kWarp = ChoiceSetting("virtual.warp", "32", "32|64", "Threads of a warp.", "threads");
inline constexpr mge_setting kThreadOrder =
    ChoiceSetting("virtual.thread_order", "forward", "forward|reverse|shuffled",
                  "Order in which the threads of a block begin; no correct kernel depends on it.");
inline constexpr mge_setting kWrongKernel =
    BoolSetting("virtual.wrong_kernel", "false",
                "Offer for every problem a kernel with a low estimate that computes nothing, to test how kernels are "
                "selected.");
inline constexpr mge_setting kReopen =
    BoolSetting("virtual.reopen", "false", "Let a lost device be opened again, as after a driver has reset it.");
inline constexpr mge_setting kCompileTime =
    DoubleSetting("virtual.compile_time_ms", "0", 0, 1e6, "ms",
                  "Simulated time to compile the program of a device when it is opened, unless the host's cache has its "
                  "binary; 0: there is no program.");
inline constexpr mge_setting kForbidRewrites =
    TextSetting("virtual.forbid_rewrites", "",
                "Rewrites of the host that models on the devices must not get, separated by commas, such as gelu.");

// The values of the settings.
struct Options {
  int devices = 0;
  bool gpu = false;                // devices are also available as gpu0, gpu1...
  bool wrong_kernel = false;       // offer a candidate with a low estimate that computes nothing
  bool reopen = false;             // a lost device can be opened again
  double compile_ms = 0;           // time to compile the program of a device; 0: there is none
  std::string forbidden;           // rewrites, with a comma before and after each
  uint64_t max_allocation = 0;     // bytes per slab; 0: no limit
  uint32_t buffer_alignment = 64;  // of operands, in bytes
  uint32_t compute_queues = 1;
  software::DeviceOptions device;  // for every device, except number and name
  Result problem;                  // the invalid setting, if any; the devices are then listed as unusable
};

// Reads the settings from the host. Call it between start() and stop().
Options ReadOptions();

}  // namespace mge::virtual_gpu
