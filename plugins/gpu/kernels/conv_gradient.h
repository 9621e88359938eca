// SPDX-License-Identifier: Apache-2.0
// Arguments of the gradient of a convolution by its filter.
#pragma once

#include "plugins/gpu/kernels/conv.h"

namespace mge::gpu {

// The gradient of a convolution by its filter: w(o, c, k) is the sum of y(i, o, p) * x(i, c, the input under tap k of p) over
// the images i and the pixels p. That sum is cut into `splits` parts, [split][outputs][channels / groups * window], which are
// added by matmul_join.
struct ConvGradientArgs {
  const void* x;
  const void* y;
  void* w;  // or the parts, in the accumulator's type
  int64_t images, channels, outputs, groups;
  WindowAxis axis[3];
  int64_t splits;
};

}  // namespace mge::gpu
