// SPDX-License-Identifier: Apache-2.0
#include "run_time_compiler.h"

#include <nvrtc.h>

#include <algorithm>
#include <iterator>

#include "plugins/gpu/runtime/abi_check.h"
#include "vendor.h"

namespace mge::cuda {
namespace {

#define MGE_NVRTC_CHECK(member, cuda, hip, parameters) \
  static_assert(gpu::SameAbi<int parameters, decltype(::cuda)>::value, #cuda " has other parameters in nvrtc.h");
GPU_COMPILER_FUNCTIONS(MGE_NVRTC_CHECK)
#undef MGE_NVRTC_CHECK

constexpr int kMajor = 13;
constexpr const char* kLibraries[] = {"libnvrtc.so.13"};

// No contraction of products and sums, so that a chain computes what its nodes compute one by one. NVRTC refuses functions of the
// host, such as the constructors of arguments, unless functions belong to the device by default.
constexpr const char* kOptions[] = {"-std=c++20", "-fmad=false", "--device-as-default-execution-space"};

// NVRTC has the functions of math.h built in, and no headers. These replace the standard headers that port.h includes.
constexpr gpu::SourceFile kStandardFiles[] = {{"stdint.h", R"(#pragma once
typedef signed char int8_t;
typedef short int16_t;
typedef int int32_t;
typedef long long int64_t;
typedef unsigned char uint8_t;
typedef unsigned short uint16_t;
typedef unsigned int uint32_t;
typedef unsigned long long uint64_t;
)"},
                                              {"math.h", R"(#pragma once
#define INFINITY __int_as_float(0x7f800000)
)"},
                                              {"cuda_fp16.h", R"(#pragma once
struct __half {
  unsigned short bits;
};
__device__ __forceinline__ __half __ushort_as_half(unsigned short bits) { return {bits}; }
__device__ __forceinline__ unsigned short __half_as_ushort(__half h) { return h.bits; }
__device__ __forceinline__ float __half2float(__half h) {
  float x;
  asm("cvt.f32.f16 %0, %1;" : "=f"(x) : "h"(h.bits));
  return x;
}
__device__ __forceinline__ __half __float2half_rn(float x) {
  __half h;
  asm("cvt.rn.f16.f32 %0, %1;" : "=h"(h.bits) : "f"(x));
  return h;
}
)"}};

constexpr gpu::CompilerFacts kFacts = {.name = "nvrtc",
                                       .library = {.name = "NVRTC",
                                                   .setting = &kNvrtc,
                                                   .driver_setting = &kDriver,
                                                   .files = kLibraries,
                                                   .install = "install libnvrtc of CUDA 13",
                                                   .toolkit_setting = kToolkit,
                                                   .without = "elementwise operators are slower"},
                                       .is_hip = false,
                                       .options = kOptions,
                                       .files = kStandardFiles};

std::string Decimal(int number) { return std::to_string(number / 10) + "." + std::to_string(number % 10); }

}  // namespace

Nvrtc::Nvrtc() : RunTimeCompiler(kFacts) {}

Result Nvrtc::Start(int major) {
  const std::string& path = library().path();
  if (major != kMajor) {
    return library().Missing(path + " has version " + std::to_string(major) + ", and this backend needs " +
                             std::to_string(kMajor));
  }
  gpu::DriverFunction<int*> count_of, archs_of;
  if (Result r = Find("nvrtcGetNumSupportedArchs", &count_of); !r.ok()) return r;
  if (Result r = Find("nvrtcGetSupportedArchs", &archs_of); !r.ok()) return r;
  if (Result r = Find("nvrtcGetPTXSize", &ptx_size_); !r.ok()) return r;
  if (Result r = Find("nvrtcGetPTX", &ptx_); !r.ok()) return r;
  int count = 0;
  if (Result r = Call(count_of, &count); !r.ok()) return r;
  supported_.resize(static_cast<size_t>(std::max(count, 0)));
  if (supported_.empty()) return library().Missing(path + " supports no device");
  if (Result r = Call(archs_of, supported_.data()); !r.ok()) return r;
  std::sort(supported_.begin(), supported_.end());
  return {};
}

// Chooses machine code of the device ("sm_90"), or else intermediate code ("compute_120") for a device that the compiler does
// not know.
Result Nvrtc::TargetOf(const gpu::Architecture& architecture, Target* out) const {
  const int number = 10 * architecture.major + architecture.minor;
  const auto above = std::upper_bound(supported_.begin(), supported_.end(), number);
  if (above == supported_.begin()) {
    return library().Missing("version " + version() + " supports devices of compute capability " +
                             Decimal(supported_.front()) + " and later, and this one has " + Decimal(number));
  }
  const int nearest = *std::prev(above);
  out->intermediate = nearest != number;
  out->option = (out->intermediate ? "-arch=compute_" : "-arch=sm_") + std::to_string(nearest);
  return {};
}

Result Nvrtc::ImageOf(void* program, const Target& target, std::string* image) const {
  if (!target.intermediate) return RunTimeCompiler::ImageOf(program, target, image);
  return Read(program, ptx_size_, ptx_, image);
}

}  // namespace mge::cuda
