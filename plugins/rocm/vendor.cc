// SPDX-License-Identifier: Apache-2.0
// ROCm's properties, and a check that the declarations of plugins/gpu/runtime match those of HIP.
#include "vendor.h"

#include <hip/hip_runtime_api.h>
#include <string.h>

#include "plugins/gpu/runtime/abi_check.h"
#include "plugins/gpu/runtime/driver.h"
#include "plugins/gpu/runtime/vendor_library.h"
#include "run_time_compiler.h"

namespace mge::gpu {
namespace {

// The header overloads these two by templates, which the declarations here hide.
namespace functions {
extern "C" hipError_t hipMalloc(void** address, size_t bytes);
extern "C" hipError_t hipHostMalloc(void** address, size_t bytes, unsigned flags);

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
#define GPU_DRIVER_CHECK(member, cuda, hip, parameters, arguments) \
  static_assert(SameAbi<int parameters, decltype(hip)>::value, #hip " has other parameters in hip_runtime_api.h");
GPU_DRIVER_FUNCTIONS(GPU_DRIVER_CHECK)
GPU_HIP_FUNCTIONS(GPU_DRIVER_CHECK)
GPU_HIP_OLD_FUNCTIONS(GPU_DRIVER_CHECK)
#pragma GCC diagnostic pop
}  // namespace functions
static_assert(hipHostMallocPortable == 1 && hipEventDisableTiming == 2 && hipStreamNonBlocking == 1 &&
              hipMemcpyDefault == 4 && hipStreamCaptureModeRelaxed == 2 && hipComputeModeProhibited == 2 &&
              hipErrorGraphExecUpdateFailure == 910);

constexpr const char* kLibraries[] = {"libamdhip64.so.7", "libamdhip64.so.6", "libamdhip64.so.5"};

std::string Decimal(int major, int minor) { return std::to_string(major) + "." + std::to_string(minor); }

// Reads hipDeviceProp_t. Later versions of HIP keep this function with the struct of version 5.
std::string ArchitectureName(int device) {
  hipDeviceProp_t properties = {};
  const auto& function = TheDriver().hip_properties;
  if (!function.call || function.call(&properties, device) != kDriverOk) return {};
  return {properties.gcnArchName, strnlen(properties.gcnArchName, sizeof(properties.gcnArchName))};
}

constexpr const char* kCollectiveFiles[] = {"librccl.so.1"};
constexpr LibraryFacts kCollectives = {.name = "RCCL",
                                       .setting = &rocm::kRccl,
                                       .driver_setting = &rocm::kDriver,
                                       .files = kCollectiveFiles,
                                       .install = "install rccl"};

}  // namespace

const Vendor& TheVendor() {
  static rocm::Hiprtc compiler;
  static const Vendor kVendor = {
      .name = "rocm",
      .product = "ROCm",
      .libraries = kLibraries,
      .device_file = "/dev/kfd",
      .install = "install the amdgpu kernel driver and the HIP runtime",
      .visible = "HIP_VISIBLE_DEVICES",
      .architectures = "MGE_HIP_ARCHITECTURES",
      .is_hip = true,
      .minimum_version = 0,  // a library that is too old lacks functions
      .numbers = {.multiprocessors = hipDeviceAttributeMultiprocessorCount,
                  .major = hipDeviceAttributeComputeCapabilityMajor,
                  .minor = hipDeviceAttributeComputeCapabilityMinor,
                  .clock_khz = hipDeviceAttributeClockRate,
                  .memory_clock_khz = hipDeviceAttributeMemoryClockRate,
                  .bus_bits = hipDeviceAttributeMemoryBusWidth,
                  .compute_mode = hipDeviceAttributeComputeMode,
                  .virtual_memory = -1,
                  .native_atomics = hipDevP2PAttrNativeAtomicSupported},
      .driver_setting = &rocm::kDriver,
      .queues_setting = &rocm::kComputeQueues,
      .rates = {.memory = &rocm::kMemoryRate, .compute = &rocm::kComputeRate, .matrix = nullptr},
      .capability = Decimal,
      .operations_per_clock = [](int, int) { return 128; },  // 64 multiply-adds of a compute unit
      .refusal = [](int, int) { return std::string(); },     // the numbers do not tell the architectures apart
      .version_text = [](int version) { return Decimal(version / 10000000, version / 100000 % 100); },
      .compiler = &compiler,
      .collectives = &kCollectives,
      .architecture_name = ArchitectureName,
  };
  return kVendor;
}

}  // namespace mge::gpu
