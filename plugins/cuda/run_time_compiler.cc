// SPDX-License-Identifier: Apache-2.0
#include "run_time_compiler.h"

#include <dlfcn.h>

#include <algorithm>
#include <iterator>
#include <string_view>

#include "vendor.h"

namespace mge::cuda {
namespace {

constexpr const char* kLibrary = "libnvrtc.so.13";
constexpr int kMajor = 13;

// No contraction of products and sums, so that a chain computes what its nodes compute one by one.
constexpr const char* kOptions[] = {"-std=c++20", "-fmad=false"};

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

Result Missing(const std::string& why) {
  return {MGE_UNAVAILABLE, "NVRTC cannot be used: " + why + "; install libnvrtc of CUDA 13, or set cuda.nvrtc to its path"};
}

std::string Decimal(int number) { return std::to_string(number / 10) + "." + std::to_string(number % 10); }

}  // namespace

Result Nvrtc::Load() {
  std::string_view path, driver;
  if (Result r = ReadSetting(kNvrtc, &path); !r.ok()) return r;
  if (Result r = ReadSetting(kDriver, &driver); !r.ok()) return r;
  if (path == "off") return {MGE_UNAVAILABLE, "NVRTC is switched off (cuda.nvrtc=off)"};
  if (path.empty() && !driver.empty()) return {MGE_UNAVAILABLE, "NVRTC is not used beside another driver (cuda.driver)"};
  if (!path.empty() && path[0] != '/') {
    return {MGE_INVALID_ARGUMENT, "cuda.nvrtc is '" + std::string(path) + "', which is not an absolute path"};
  }
  const std::string name = path.empty() ? kLibrary : std::string(path);
  void* library = dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
  if (!library) {
    const char* error = dlerror();
    return Missing(error ? error : name);
  }
#define MGE_NVRTC_FIND(member, function)                                        \
  f_.member = reinterpret_cast<decltype(f_.member)>(dlsym(library, #function)); \
  if (!f_.member) return Missing(name + " has no function " #function);
  MGE_NVRTC_FUNCTIONS(MGE_NVRTC_FIND)
#undef MGE_NVRTC_FIND
  int major = 0, minor = 0, count = 0;
  if (Result r = ResultOf(f_.version(&major, &minor), "nvrtcVersion"); !r.ok()) return r;
  if (major != kMajor) {
    return Missing(name + " has version " + std::to_string(major) + ", and this backend needs " + std::to_string(kMajor));
  }
  version_ = std::to_string(major) + "." + std::to_string(minor);
  if (Result r = ResultOf(f_.arch_count(&count), "nvrtcGetNumSupportedArchs"); !r.ok()) return r;
  supported_.resize(static_cast<size_t>(std::max(count, 0)));
  if (supported_.empty()) return Missing(name + " supports no device");
  if (Result r = ResultOf(f_.archs(supported_.data()), "nvrtcGetSupportedArchs"); !r.ok()) return r;
  std::sort(supported_.begin(), supported_.end());
  return {};
}

Result Nvrtc::ResultOf(nvrtcResult status, const char* function) const {
  if (status == NVRTC_SUCCESS) return {};
  return {MGE_UNAVAILABLE, std::string(function) + " failed with " + f_.status_name(status)};
}

std::string Nvrtc::TargetOf(const gpu::Architecture& architecture) const {
  const int number = 10 * architecture.major + architecture.minor;
  const auto above = std::upper_bound(supported_.begin(), supported_.end(), number);
  if (above == supported_.begin()) return {};
  const int nearest = *std::prev(above);
  return (nearest == number ? "sm_" : "compute_") + std::to_string(nearest);
}

Result Nvrtc::Open(const gpu::Architecture& architecture, std::string* identity) {
  std::lock_guard lock(mutex_);
  if (!tried_) {
    tried_ = true;
    result_ = Load();
  }
  if (!result_.ok()) return result_;
  const std::string target = TargetOf(architecture);
  if (target.empty()) {
    return Missing("version " + version_ + " supports devices of compute capability " + Decimal(supported_.front()) +
                   " and later, and this one has " + Decimal(10 * architecture.major + architecture.minor));
  }
  *identity = "NVRTC " + version_ + " " + target;
  for (const char* option : kOptions) *identity += std::string(" ") + option;
  for (const gpu::SourceFile& file : kStandardFiles) *identity += std::string("\n") + file.name + "\n" + file.text;
  return {};
}

Result Nvrtc::Compile(const std::string& source, const gpu::Architecture& architecture, std::string* image) {
  std::vector<const char*> names, texts;
  for (const auto& files : {std::span<const gpu::SourceFile>(kStandardFiles), gpu::kKernelFiles}) {
    for (const gpu::SourceFile& file : files) {
      names.push_back(file.name);
      texts.push_back(file.text);
    }
  }
  nvrtcProgram program = nullptr;
  if (Result r = ResultOf(
          f_.create(&program, source.c_str(), "chain.cu", static_cast<int>(names.size()), texts.data(), names.data()),
          "nvrtcCreateProgram");
      !r.ok()) {
    return r;
  }
  struct Destroy {
    ~Destroy() { functions.destroy(&program); }
    const Functions& functions;
    nvrtcProgram& program;
  } const destroy{f_, program};
  const std::string target = TargetOf(architecture), option = "-arch=" + target;
  std::vector<const char*> options(std::begin(kOptions), std::end(kOptions));
  options.push_back(option.c_str());
  size_t bytes = 0;
  if (Result r = ResultOf(f_.compile(program, static_cast<int>(options.size()), options.data()), "nvrtcCompileProgram");
      !r.ok()) {
    std::string log;
    if (f_.log_size(program, &bytes) == NVRTC_SUCCESS && bytes > 0) {
      log.resize(bytes);
      if (f_.log(program, log.data()) != NVRTC_SUCCESS) log.clear();
    }
    return {MGE_UNAVAILABLE, r.text() + (log.empty() ? "" : ": " + std::string(log.c_str()))};
  }
  const bool machine_code = target.starts_with("sm_");
  if (Result r = ResultOf((machine_code ? f_.binary_size : f_.ptx_size)(program, &bytes), "nvrtcGetCUBINSize"); !r.ok()) {
    return r;
  }
  image->assign(bytes, '\0');
  return ResultOf((machine_code ? f_.binary : f_.ptx)(program, image->data()), "nvrtcGetCUBIN");
}

}  // namespace mge::cuda
