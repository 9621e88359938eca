// SPDX-License-Identifier: Apache-2.0
// NVRTC, NVIDIA's compiler at run time: opened when the first chain of elementwise nodes is planned.
#pragma once

#include <nvrtc.h>

#include <mutex>
#include <string>
#include <vector>

#include "plugins/gpu/runtime/compiler.h"

namespace mge::cuda {

// F(member, function)
#define MGE_NVRTC_FUNCTIONS(F)             \
  F(version, nvrtcVersion)                 \
  F(status_name, nvrtcGetErrorString)      \
  F(arch_count, nvrtcGetNumSupportedArchs) \
  F(archs, nvrtcGetSupportedArchs)         \
  F(create, nvrtcCreateProgram)            \
  F(destroy, nvrtcDestroyProgram)          \
  F(compile, nvrtcCompileProgram)          \
  F(log_size, nvrtcGetProgramLogSize)      \
  F(log, nvrtcGetProgramLog)               \
  F(binary_size, nvrtcGetCUBINSize)        \
  F(binary, nvrtcGetCUBIN)                 \
  F(ptx_size, nvrtcGetPTXSize)             \
  F(ptx, nvrtcGetPTX)

// The compiler of the setting cuda.nvrtc, or else that of the system. Thread-safe.
class Nvrtc : public gpu::Compiler {
 public:
  Result Open(const gpu::Architecture& architecture, std::string* identity) override;
  Result Compile(const std::string& source, const gpu::Architecture& architecture, std::string* image) override;

 private:
  // Opens the library. Fails with MGE_UNAVAILABLE and what to do if there is none, or one of another major version.
  Result Load();
  Result ResultOf(nvrtcResult status, const char* function) const;
  // Returns the target for a device: its own machine code ("sm_90"), or intermediate code ("compute_120") if the compiler
  // does not know the device. Returns "" if the compiler supports later devices only.
  std::string TargetOf(const gpu::Architecture& architecture) const;

#define MGE_NVRTC_MEMBER(member, function) decltype(&::function) member = nullptr;
  struct Functions {
    MGE_NVRTC_FUNCTIONS(MGE_NVRTC_MEMBER)
  } f_;
#undef MGE_NVRTC_MEMBER
  std::mutex mutex_;
  bool tried_ = false;
  Result result_;
  std::string version_;
  std::vector<int> supported_;  // 10 * major + minor, ascending
};

}  // namespace mge::cuda
