// SPDX-License-Identifier: Apache-2.0
// NVRTC, NVIDIA's compiler at run time: opened when the first chain of elementwise nodes is planned.
#pragma once

#include <string>
#include <vector>

#include "plugins/gpu/runtime/run_time_compiler.h"

namespace mge::cuda {

// The compiler of the setting cuda.nvrtc, or else that of the system.
class Nvrtc : public gpu::RunTimeCompiler {
 public:
  Nvrtc();

 private:
  Result Start(int major) override;
  Result TargetOf(const gpu::Architecture& architecture, Target* out) const override;
  Result ImageOf(void* program, const Target& target, std::string* image) const override;

  std::vector<int> supported_;  // 10 * major + minor, ascending
  gpu::DriverFunction<void*, size_t*> ptx_size_;
  gpu::DriverFunction<void*, char*> ptx_;
};

}  // namespace mge::cuda
