// SPDX-License-Identifier: Apache-2.0
// Arguments of convolutions and pools. There are up to three spatial axes; missing leading axes have size 1. Tensors are
// dense, (images, channels, spatial axes).
#pragma once

#include <stdint.h>

#include "plugins/gpu/kernels/activation.h"

namespace mge::gpu {

// One axis of a window. Output o reads the input at o * stride - pad_begin + k * dilation for k < kernel. Positions outside
// of [0, in) are padding.
struct WindowAxis {
  int64_t in, out, kernel, stride, dilation, pad_begin, pad_end;
};

// y = f(convolution + bias + residual); w is (outputs, channels / groups, window), or, if `packed` (conv_product only),
// (groups, channels / groups * window, outputs / groups), so that neighbouring threads read neighbouring elements. bias (one
// per output) and residual (as y) may be null.
struct ConvArgs {
  const void* x;
  const void* w;
  const void* bias;
  const void* residual;
  void* y;
  int64_t images, channels, outputs, groups;
  WindowAxis axis[3];
  Activation activation;
  int32_t packed;
};

// The arguments of MaxPool and AveragePool.
struct PoolArgs {
  const void* x;
  void* y;
  int64_t* indices;  // indices of the maxima; may be null
  int64_t n;         // number of outputs
  WindowAxis axis[3];
  int32_t count_pads;    // averages divide by the size of the whole window
  int32_t column_major;  // indices count in column-major order
};

}  // namespace mge::gpu
