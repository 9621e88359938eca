// SPDX-License-Identifier: Apache-2.0
// Depthwise convolutions of bytes, channels last: each output channel reads one input channel.
#pragma once

#include "vec/int8.h"

namespace mge::cpu {

// Channels per block of packed weights. A block contains, for every 4 taps, 4 bytes of each channel.
inline constexpr int64_t kInt8DepthwiseBlock = 64;

// Sums of x w + start. The weights are centred: their zero point is subtracted.
struct Int8DepthwiseTask {
  const void* x;
  bool x_signed;
  const void* weights;
  ConvWindows windows;  // without depth
  int64_t channels;
  const uint8_t* outside;  // one pixel of bytes outside of the image: channels, and 64 bytes that can be read
  Int8Task result;         // start, result, scale, a_scale, bias, y_zero, c
};

struct Int8DepthwiseTable {
  // Computes rows r0..r1 of output pixels. A weight is an integer as a float, at tap * channels + channel.
  void (*run)(const Int8DepthwiseTask& task, int64_t r0, int64_t r1);
  // The same with VNNI instructions, which the processor must have. Null if the instruction set has none. Weights are signed
  // bytes in blocks. If x is signed, 128 is added to it, which the start must contain.
  void (*run_vnni)(const Int8DepthwiseTask& task, int64_t r0, int64_t r1);
};

// The number of taps that a convolution may have. Sums of so many products of 8-bit differences are exact as floats.
inline constexpr int64_t kInt8DepthwiseTaps = 128;

MGE_CPU_DISPATCH(Int8DepthwiseTable, Int8Depthwise)

}  // namespace mge::cpu
