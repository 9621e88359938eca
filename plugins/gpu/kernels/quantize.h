// SPDX-License-Identifier: Apache-2.0
// Arguments of the kernels that quantize and dequantize: real = (quantized - zero point) * scale.
#pragma once

#include <stdint.h>

namespace mge::gpu {

// y = x quantized or dequantized. The tensor is (outer, dim, inner). With block 0, each index of dim has a scale; dim 1: one
// scale for all. Otherwise `block` neighbours along dim share one, and the scales are (outer, ceil(dim / block), inner).
struct QuantizeArgs {
  const void* x;
  const void* scale;
  const void* zero;  // as many as scales, in the quantized type; null: 0
  void* y;
  int64_t n;  // number of elements
  int64_t dim, inner, block;
  int32_t type;        // mge_dtype of x
  int32_t scale_type;  // mge_dtype of the scales
  int32_t division;    // quantize: mge_dtype to which the operands and the quotient of x / scale are rounded
  int32_t reserved;
};

// y = x as uint8, with the scale and the zero point that cover the range of x and 0. `ranges` has the lowest and the highest
// element of each of `blocks` parts of x. y_scale and y_zero may be null.
struct DynamicQuantizeArgs {
  const float* x;
  float* ranges;
  uint8_t* y;
  float* y_scale;
  uint8_t* y_zero;
  int64_t n;
  int64_t blocks;
};

}  // namespace mge::gpu
