// SPDX-License-Identifier: Apache-2.0
// Arguments of the kernels that try the emulated machine, good ones and faulty ones.
#pragma once

#include <stdint.h>

namespace mge::gpu {

// With which machine_deep_stack ends the process.
constexpr int kCameThrough = 3;

struct MachineArgs {
  const int32_t* x;
  int32_t* y;
  int64_t n;
};

}  // namespace mge::gpu
