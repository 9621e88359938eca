// SPDX-License-Identifier: Apache-2.0
// Arguments of convolutions of 8-bit integers.
#pragma once

#include <stdint.h>

#include "plugins/gpu/kernels/conv.h"

namespace mge::gpu {

// y = convolution of x - x_zero and w - w_zero: int32 sums, or, for qlinear kernels, these plus bias as real numbers, quantized:
// sum * (x_scale * w_scale / y_scale) + y_zero. w has a zero point and a scale for all outputs (step 0) or for each (step 1).
// Null zero points and a null bias are 0. `shape` has the sizes, its pointers are not used. Its `packed` is the order of w, as
// for the kernels of floats: for nhwc_direct, nhwc_depthwise and nhwc_product.
struct IntegerConvArgs {
  const uint8_t* x;
  const uint8_t* w;
  const uint8_t* x_zero;
  const uint8_t* w_zero;
  const float* x_scale;
  const float* w_scale;
  const float* y_scale;
  const uint8_t* y_zero;
  const int32_t* bias;
  void* y;
  int64_t w_zero_step, w_scale_step;
  int32_t x_signed, w_signed, y_signed;  // whether they are int8, or uint8
  int32_t reserved;
  ConvArgs shape;
};

}  // namespace mge::gpu
