// SPDX-License-Identifier: Apache-2.0
#include "run_time_compiler.h"

#include <hip/hiprtc.h>

#include "plugins/gpu/runtime/abi_check.h"
#include "vendor.h"

namespace mge::rocm {
namespace {

#define MGE_HIPRTC_CHECK(member, cuda, hip, parameters) \
  static_assert(gpu::SameAbi<int parameters, decltype(::hip)>::value, #hip " has other parameters in hiprtc.h");
GPU_COMPILER_FUNCTIONS(MGE_HIPRTC_CHECK)
#undef MGE_HIPRTC_CHECK

constexpr const char* kLibraries[] = {"libhiprtc.so.7", "libhiprtc.so.6", "libamdhip64.so.5"};

// No contraction of products and sums, so that a chain computes what its nodes compute one by one.
constexpr const char* kOptions[] = {"-std=c++20", "-O3", "-ffp-contract=off"};

// hiprtc has the contents of hip_runtime.h built in, and no headers. These replace those that port.h includes. The integers of
// stdint.h have names of their own, because versions of hiprtc define them differently.
constexpr gpu::SourceFile kStandardFiles[] = {{"stdint.h", R"(#pragma once
typedef __INT8_TYPE__ mge_int8_t;
#define int8_t mge_int8_t
typedef __INT16_TYPE__ mge_int16_t;
#define int16_t mge_int16_t
typedef __INT32_TYPE__ mge_int32_t;
#define int32_t mge_int32_t
typedef __INT64_TYPE__ mge_int64_t;
#define int64_t mge_int64_t
typedef __UINT8_TYPE__ mge_uint8_t;
#define uint8_t mge_uint8_t
typedef __UINT16_TYPE__ mge_uint16_t;
#define uint16_t mge_uint16_t
typedef __UINT32_TYPE__ mge_uint32_t;
#define uint32_t mge_uint32_t
typedef __UINT64_TYPE__ mge_uint64_t;
#define uint64_t mge_uint64_t
)"},
                                              {"math.h", R"(#pragma once
#ifndef INFINITY
#define INFINITY __builtin_inff()
#endif
)"},
                                              {"hip/hip_runtime.h", "#pragma once\n"}};

constexpr gpu::CompilerFacts kFacts = {.name = "hiprtc",
                                       .library = {.name = "hiprtc",
                                                   .setting = &kHiprtc,
                                                   .driver_setting = &kDriver,
                                                   .files = kLibraries,
                                                   .install = "install the HIP runtime with hiprtc",
                                                   .without = "elementwise operators are slower"},
                                       .is_hip = true,
                                       .options = kOptions,
                                       .files = kStandardFiles,
                                       .one_at_a_time = true};  // threads crash in version 5

}  // namespace

Hiprtc::Hiprtc() : RunTimeCompiler(kFacts) {}

Result Hiprtc::Start(int) { return {}; }

// Without an option, hiprtc compiles for the current device.
Result Hiprtc::TargetOf(const gpu::Architecture& architecture, Target* out) const {
  if (!architecture.name.empty()) out->option = "--offload-arch=" + architecture.name;
  return {};
}

}  // namespace mge::rocm
