// SPDX-License-Identifier: Apache-2.0
// CUDA's properties, and a check that the declarations of plugins/gpu/runtime match those of cuda.h.
#include "vendor.h"

#include <cuda.h>
#if __has_include(<nccl.h>)
#include <nccl.h>
#endif

#include <algorithm>

#include "plugins/gpu/runtime/abi_check.h"
#include "plugins/gpu/runtime/driver.h"
#include "plugins/gpu/runtime/nccl.h"
#include "plugins/gpu/runtime/vendor_library.h"
#include "run_time_compiler.h"

// cuda.h declares the newest version of each function by a macro. This one is older, like that of HIP.
#undef cuGraphExecUpdate
extern "C" CUresult cuGraphExecUpdate(CUgraphExec, CUgraph, CUgraphNode*, CUgraphExecUpdateResult*);

namespace mge::gpu {
namespace {

#define GPU_DRIVER_CHECK(member, cuda, hip, parameters, arguments) \
  static_assert(SameAbi<int parameters, decltype(::cuda)>::value, #cuda " has other parameters in cuda.h");
GPU_DRIVER_FUNCTIONS(GPU_DRIVER_CHECK)
GPU_CUDA_FUNCTIONS(GPU_DRIVER_CHECK)
static_assert(CUDA_ERROR_DEVICE_UNAVAILABLE == int{kDriverBusy} && CU_MEMHOSTALLOC_PORTABLE == 1 &&
              CU_EVENT_DISABLE_TIMING == 2 && CU_STREAM_NON_BLOCKING == 1 && CU_STREAM_CAPTURE_MODE_RELAXED == 2 &&
              CU_COMPUTEMODE_PROHIBITED == 2 && CU_MEM_ALLOCATION_TYPE_PINNED == 1 && CU_MEM_LOCATION_TYPE_DEVICE == 1 &&
              CU_MEM_ACCESS_FLAGS_PROT_READWRITE == 3 && sizeof(CUmemAllocationProp) == 32 && sizeof(CUmemAccessDesc) == 12);

#if __has_include(<nccl.h>)
#define GPU_NCCL_CHECK(member, function, parameters) \
  static_assert(SameAbi<int parameters, decltype(::function)>::value, #function " has other parameters in nccl.h");
GPU_NCCL_FUNCTIONS(GPU_NCCL_CHECK)
static_assert(sizeof(ncclUniqueId) == sizeof(NcclId) && ncclInProgress == int{kNcclInProgress} &&
              ncclBfloat16 == int{kNcclBf16} && ncclFloat16 == int{kNcclF16} && ncclUint64 == int{kNcclU64} &&
              ncclMax == int{kNcclMax} && ncclMin == int{kNcclMin});
#endif

std::string Decimal(int major, int minor) { return std::to_string(major) + "." + std::to_string(minor); }

constexpr const char* kLibraries[] = {"libcuda.so.1"};
constexpr int kMinCapability = MGE_CUDA_LEAST_CAPABILITY;  // 10 * major + minor
constexpr int kToolkit = CUDA_VERSION / 1000 * 1000;       // drivers accept code of all toolkits of their major version

// Machine code runs on devices of its major version, from its minor version on. Other devices get the intermediate code,
// which is that of the oldest.
int CodeCapability(int major, int minor) {
  constexpr int kCompiled[] = {MGE_CUDA_CAPABILITIES};
  int best = kMinCapability;
  for (const int code : kCompiled) {
    if (code / 10 == major && code % 10 <= minor) best = std::max(best, code);
  }
  return best;
}

constexpr const char* kCollectiveFiles[] = {"libnccl.so.2"};
constexpr LibraryFacts kCollectives = {.name = "NCCL",
                                       .setting = &cuda::kNccl,
                                       .driver_setting = &cuda::kDriver,
                                       .files = kCollectiveFiles,
                                       .install = "install libnccl2",
                                       .toolkit_setting = cuda::kToolkit};

}  // namespace

const Vendor& TheVendor() {
  static cuda::Nvrtc compiler;
  static const Vendor kVendor = {
      .name = "cuda",
      .product = "CUDA",
      .libraries = kLibraries,
      .device_file = nullptr,
      .install = "install the NVIDIA driver, version 580 or later",
      .visible = "CUDA_VISIBLE_DEVICES",
      .architectures = "MGE_CUDA_ARCHITECTURES",
      .is_hip = false,
      .minimum_version = kToolkit,
      .numbers = {.multiprocessors = CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT,
                  .major = CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR,
                  .minor = CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR,
                  .clock_khz = CU_DEVICE_ATTRIBUTE_CLOCK_RATE,
                  .memory_clock_khz = CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE,
                  .bus_bits = CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH,
                  .compute_mode = CU_DEVICE_ATTRIBUTE_COMPUTE_MODE,
                  .virtual_memory = CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED,
                  .native_atomics = CU_DEVICE_P2P_ATTRIBUTE_NATIVE_ATOMIC_SUPPORTED},
      .driver_setting = &cuda::kDriver,
      .queues_setting = &cuda::kComputeQueues,
      .rates = {.memory = &cuda::kMemoryRate, .compute = &cuda::kComputeRate, .matrix = &cuda::kMatrixRate},
      .capability = Decimal,
      // The CUDA C++ Programming Guide, "Arithmetic Instructions": 64 or 128 multiply-adds.
      .operations_per_clock = [](int major, int minor) { return 10 * major + minor <= 80 ? 128 : 256; },
      .refusal = [](int major, int minor) -> std::string {
        if (10 * major + minor >= kMinCapability) return {};
        return "its compute capability " + Decimal(major, minor) + " is older than " +
               Decimal(kMinCapability / 10, kMinCapability % 10) + ", for which this backend was built";
      },
      .code_capability = CodeCapability,
      .version_text = [](int version) { return Decimal(version / 1000, version % 1000 / 10); },
      .compiler = &compiler,
      .collectives = &kCollectives,
  };
  return kVendor;
}

}  // namespace mge::gpu
