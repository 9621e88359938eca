// SPDX-License-Identifier: Apache-2.0
// Reads ConvInteger and QLinearConv as one convolution.
#pragma once

#include "mge/plugin.hpp"
#include "plugins/gpu/kernels/integer_conv.h"
#include "plugins/gpu/support/convolution.h"

namespace mge::gpu {

// A convolution of 8-bit integers, with the numbers of its operands in the problem; -1: absent.
struct IntegerConvolution {
  Convolution conv;           // sizes, x, w and bias
  IntegerConvArgs args = {};  // without pointers and `shape`
  int x_zero = -1, w_zero = -1, x_scale = -1, w_scale = -1, y_scale = -1, y_zero = -1;

  bool quantizes() const { return y_scale >= 0; }
};

// Refuses what no kernel computes.
Result FindIntegerConvolution(const Problem& p, IntegerConvolution* out);

}  // namespace mge::gpu
