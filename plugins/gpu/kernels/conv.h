// SPDX-License-Identifier: Apache-2.0
// Arguments of convolutions and pools. There are up to three spatial axes; missing leading axes have size 1. Tensors are
// dense, (images, channels, spatial axes), or (images, spatial axes, channels) for kernels named nhwc.
#pragma once

#include <stdint.h>

#include "plugins/gpu/kernels/activation.h"

namespace mge::gpu {

// One axis of a window. Output o reads the input at o * stride - pad_begin + k * dilation for k < kernel. Positions outside
// of [0, in) are padding.
struct WindowAxis {
  int64_t in, out, kernel, stride, dilation, pad_begin, pad_end;
};

// y = f(convolution + bias + residual); w is (outputs, channels / groups, window), or, if `packed`, in the order in which the
// kernel reads it: (groups, channels / groups * window, outputs / groups) for conv_product, (channels / groups * window,
// outputs) for conv_nhwc_direct and conv_nhwc_depthwise, (outputs, window, channels / groups) for conv_nhwc_product and
// conv_nhwc_mma. bias (one per output) and residual (as y) may be null.
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
  int32_t
      splits;  // conv_nhwc_product_part: the parts of the sums, [split][image and pixel][output], in the accumulator's type,
               // are stored in y; matmul_join adds them
};

// The arguments of MaxPool and AveragePool.
struct PoolArgs {
  const void* x;
  void* y;
  int64_t* indices;  // indices of the maxima; may be null
  int64_t n;         // number of outputs
  int64_t channels;  // NHWC only
  WindowAxis axis[3];
  int32_t count_pads;    // averages divide by the size of the whole window
  int32_t column_major;  // indices count in column-major order
  int32_t narrow;        // indices of elements, and twice their numbers, fit in 32 bits
};

}  // namespace mge::gpu
