// SPDX-License-Identifier: Apache-2.0
// Arguments of the correct and faulty kernels that test the emulator.
#pragma once

#include <stdint.h>

namespace mge::gpu {

// The exit code with which machine_deep_stack ends the process if no guard page stops it.
constexpr int kCameThrough = 3;

struct MachineArgs {
  const int32_t* x;
  int32_t* y;
  int64_t n;
};

}  // namespace mge::gpu
