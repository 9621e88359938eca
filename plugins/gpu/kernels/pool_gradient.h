// SPDX-License-Identifier: Apache-2.0
// Arguments of the gradient of MaxPool.
#pragma once

#include "plugins/gpu/kernels/conv.h"

namespace mge::gpu {

// dx(i) = the sum of dy over the windows whose maximum is i. `indices` has the maximum of each window, counted from the first
// plane. The axes are those of the pool.
struct PoolGradientArgs {
  const void* dy;
  const int64_t* indices;
  void* dx;
  int64_t n;  // number of elements of dx
  WindowAxis axis[3];
};

}  // namespace mge::gpu
