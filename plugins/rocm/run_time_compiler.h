// SPDX-License-Identifier: Apache-2.0
// hiprtc, AMD's compiler at run time: opened when the first chain of elementwise nodes is planned.
#pragma once

#include <string>

#include "plugins/gpu/runtime/run_time_compiler.h"

namespace mge::rocm {

// The compiler of the setting rocm.hiprtc, or else that of the system.
class Hiprtc : public gpu::RunTimeCompiler {
 public:
  Hiprtc();

 private:
  Result Start(int major) override;
  Result TargetOf(const gpu::Architecture& architecture, Target* out) const override;
};

}  // namespace mge::rocm
