// SPDX-License-Identifier: Apache-2.0
// Depthwise convolution of channels-last images: every channel has its own filter.
#pragma once

#include "vec/gemm.h"

namespace mge::cpu {

// A depthwise convolution. A channel with several outputs is several channels here, made by `repeat`. A group of several channels
// is the sum of such convolutions, one for each of them.
struct DepthwiseTask {
  const float* x;
  float* y;
  const float* weights;  // (kd, kh, kw, channels)
  const float* bias;     // per channel, or null
  const float* add;      // same shape as y, or null; may be y
  int64_t channels;
  int64_t h, w, kh, kw, sh, sw, ph, pw, dh, dw, oh, ow;
  int64_t d, kd, sd, pd, dd, od;  // depth, as in ConvWindows; 1, 1, 1, 0, 1, 1 for images
  int64_t parts;                  // number of parts per output row
  Activation activation;
  float lo, hi;
};

struct DepthwiseTable {
  // Computes parts p0..p1 of the output's rows; part = ((image * od + z) * oh + y) * parts + number.
  void (*run)(const DepthwiseTask& task, int64_t p0, int64_t p1);
  // Writes each of n elements, which are `step` floats apart, `times` times.
  void (*repeat)(const float* x, int64_t n, int64_t step, int64_t times, float* y);
};

MGE_CPU_DISPATCH(DepthwiseTable, Depthwise)

}  // namespace mge::cpu
